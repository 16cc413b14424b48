/** The variables of a request: the ports that its handlers use, and the principal. */
import type { Context, Hono } from "hono";
import type { Artifacts } from "../../artifacts/artifacts.ts";
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { DeadLetterDirectory } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import type { ListsMove } from "../../d1/move-lists.ts";
import type { D1ProjectSecrets } from "../../d1/project-secrets.ts";
import type { D1ProjectSettings } from "../../d1/project-settings.ts";
import type { TriggerDirectory } from "../../d1/triggers.ts";
import type { Projects } from "../../git/projects.ts";
import type { LibraryPorts } from "../../library/authoring/authoring.ts";
import type { ResolveHost } from "../../library/tasks/resolver.ts";
import type { McpTools } from "../../mcp/mcp-tools.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ActorLookup } from "../../protocol/actor-lookup.ts";
import type { Channel } from "../../protocol/channels.ts";
import type { LocationPolicy } from "../../protocol/location-policy.ts";
import type { Principal } from "../../shared/principal.ts";
import type { SignIn } from "../../shared/sign-in.ts";

/** The ports that depend on a request's environment. The functions throw `UNAVAILABLE` if a binding is missing. */
export interface RequestPorts {
  actors: ActorLookup;
  channels(): ReadonlyMap<string, Channel>;
  /** Allowed locations for the agents and conversations of a tenant. */
  location(tenant: string): LocationPolicy;
  directory(): Directory;
  deadLetters(): DeadLetterDirectory;
  triggers(): TriggerDirectory;
  lists(): ListsMove;
  attachments(): AttachmentStore;
  settings(): D1ProjectSettings;
  secrets(): D1ProjectSecrets;
  /** Resolves hosts of requests. Absent: they are not resolved. */
  resolve?: ResolveHost;
  /** Returns the reason why a webhook's address may not get notices; `null` if it may. Absent: the deployment sends no notices. */
  webhookProblem?: (url: URL) => string | null;
  projects(): Projects;
  artifacts(): Artifacts;
  mcpServers(): McpTools;
  libraries(tenant: string): LibraryPorts;
  /** Returns the ids of the agents that the code declares for a tenant, in the order of the code. */
  inCode(tenant: string): readonly string[];
  missing(): MissingPart[];
  /** `offline` if no language model is connected. */
  model(): "offline" | undefined;
  /** The login of the console. Absent = its readers paste a token. */
  signIn?: SignIn;
}

/** A part of the configuration that the runtime serves without. Contains no secret: strangers may read it. */
export interface MissingPart {
  /** The name of a binding, a variable or a class. */
  name: string;
  /** Names the parts that do not work, and the line to add. */
  message: string;
}

export interface RequestVariables extends RequestPorts {
  clock: Clock;
  /** Checks the runtime and declares its agents. It is a no-op after the first success. */
  seed(): Promise<void>;
  /** Maximum size of a body, in bytes. */
  maxBodyBytes: number;
  /** Maximum size of an attachment, in bytes. */
  maxAttachmentBytes: number;
  principal: Principal;
}

export interface HttpEnv {
  Variables: RequestVariables;
}

export type HttpRoutes = Hono<HttpEnv>;

/** Returns a function that keeps the Worker alive for work after the response. Servers without a context of execution finish it anyway. */
export function waitUntilOf(context: Context<HttpEnv>): (work: Promise<unknown>) => void {
  try {
    const { executionCtx } = context;
    return (work) => executionCtx.waitUntil(work);
  } catch {
    return () => undefined;
  }
}
