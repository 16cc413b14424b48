/** `/api/conversations/:id/turns/:turnId/recording` and `/replay`: an ended turn as a fixture, and its replay without a call. */
import { recordingSchema, replaySchema } from "../../protocol/recording.ts";
import { unwrap } from "../../shared/errors.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, findConversation } from "./conversations.ts";
import { turnParams } from "./turns.ts";

const TURN = `${CONVERSATION}/turns/:turnId` as const;

export const replayRoutes: readonly Route[] = [
  route({
    id: "getRecording",
    method: "get",
    path: `${TURN}/recording`,
    tag: "turns",
    summary: "Export a turn as a fixture",
    description:
      "For principals that may delete the conversation. The entries of the turn, its replies and results, and the versions of its agents. A test replays the file without a call. `CONFLICT` while the turn is active, and after an erasure of its content.",
    params: turnParams,
    answers: ok("The recording.", recordingSchema),
    errors: ["FORBIDDEN", "CONFLICT", "TOO_LARGE"],
    handle: async ({ params: { id, turnId } }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).recordTurn(ports.principal, turnId))),
  }),
  route({
    id: "replayTurn",
    method: "post",
    path: `${TURN}/replay`,
    tag: "turns",
    summary: "Replay a turn without a call",
    description:
      "Plans the turn again on its recorded results, and compares the entries. It calls no model and no tool, and writes nothing. `divergence` is the first difference. `CONFLICT` while the turn is active, and after an erasure of its content.",
    params: turnParams,
    answers: ok("The replay.", replaySchema),
    errors: ["CONFLICT", "TOO_LARGE"],
    handle: async ({ params: { id, turnId } }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).replayTurn(ports.principal, turnId))),
  }),
];
