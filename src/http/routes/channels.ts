/** `/api/channels`: takes the requests of channels. Their signature replaces authentication. */
import { z } from "zod";
import { CHANNEL_NAME, channelOf } from "../../protocol/channels.ts";
import { conflict } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { readBytes } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { takeEvents } from "../channels.ts";
import type { ApiOperation } from "../openapi/operation.ts";

const PATH = "/api/channels/:channel" as const;
/** Slack's events have less than 64 KiB. */
const MAX_BYTES = 1024 * 1024;

export const channelOperations: readonly ApiOperation[] = [
  {
    id: "deliverToChannel",
    method: "post",
    path: PATH,
    tag: "channels",
    summary: "Deliver the event of a channel",
    description:
      "The platform of the channel sends its events here, such as Slack. The adapter of the channel verifies the signature, and answers as the platform expects. A message starts a turn of the channel's agent. A repeated event has no effect.",
    open: true,
    params: z.object({
      channel: z
        .string()
        .regex(CHANNEL_NAME)
        .meta({ description: "A name in `channels`.", example: "team-chat" }),
    }),
    body: z.unknown().meta({
      description: "As the platform sends it.",
      example: { type: "event_callback", event_id: "Ev1" },
    }),
    answers: [{ status: 200, description: "The event is stored, or needs no answer." }],
    errors: ["NOT_FOUND", "CONFLICT", "TOO_LARGE", "RATE_LIMITED", "QUEUE_OVERFLOW"],
  },
];

/** `count` counts a refused request of an address, and `countUser` an event of a user. Both throw `RATE_LIMITED`. */
export function channelRoutes(
  app: HttpRoutes,
  count: (request: Request, env: unknown) => Promise<void>,
  countUser: (principal: Principal, env: unknown) => Promise<void>,
): void {
  app.post(PATH, async ({ req, env, var: ports }) => {
    const name = req.param("channel");
    const channel = channelOf(ports.channels(), name);
    const { adapter } = channel;
    if (adapter.receive === undefined) throw conflict(`The channel "${name}" takes mails only.`);
    const body = await readBytes(req.raw, Math.min(MAX_BYTES, ports.maxBodyBytes));
    const { url, headers } = req.raw;
    const { events, response } = await adapter.receive(new Request(url, { method: "POST", headers, body }));
    // A platform sends the events of all people from few addresses, so only refused requests count.
    if (!response.ok) await count(req.raw, env);
    await ports.seed();
    await takeEvents({ actors: ports.actors, count: (user) => countUser(user, env) }, name, channel, events);
    return response;
  });
}
