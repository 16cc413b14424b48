/** What handlers are given: the ports of one request, and who is asking. */

import type { Hono } from "hono";
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { DeadLetterDirectory } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import type { LibraryPorts } from "../../library/authoring.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ActorLookup } from "../../protocol/actor-lookup.ts";
import type { Principal } from "../../shared/principal.ts";

/** The ports of one request. */
export interface RequestPorts {
  clock: Clock;
  actors: ActorLookup;
  /** Throws `UNAVAILABLE` where there is none. */
  directory(): Directory;
  /** As `directory`. */
  deadLetters(): DeadLetterDirectory;
  libraries(tenant: string): LibraryPorts;
  /** Creates what every fresh runtime has; does nothing once that is done. */
  seed(): Promise<void>;
  /** As `directory`. */
  attachments(): AttachmentStore;
  /** The most bytes that a body may have. */
  maxBodyBytes: number;
  /** The most bytes that an attachment may have. */
  maxAttachmentBytes: number;
}

export type HttpEnv = { Variables: RequestPorts & { principal: Principal } };

export type HttpRoutes = Hono<HttpEnv>;
