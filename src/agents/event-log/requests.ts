/** The schemas of requests to a log. */
import { z } from "zod";
import { LOGGED_TYPES, MAX_QUERY, MESSAGE_ROLES } from "../../protocol/event-log.ts";
import { pageOptionsSchema } from "../../shared/page.ts";

const isPlace = (cursor: string) => /^\d{1,16}$/.test(cursor) && Number.isSafeInteger(Number(cursor));
const page = pageOptionsSchema(isPlace);
const name = z.string().max(200).exactOptional();
const time = z.number().exactOptional();

const filter = {
  types: z.array(z.enum(LOGGED_TYPES)).exactOptional(),
  conversation: name,
  run: name,
  agent: name,
  correlation: name,
  since: time,
  until: time,
  after: z.int().min(0).exactOptional(),
};

export const followRequest = z.strictObject(filter);
export const eventsRequest = page.extend(filter);
export const searchRequest = page.omit({ order: true }).extend({
  ...{ q: z.string().max(MAX_QUERY), agent: name, user: name, since: time, until: time },
  role: z.enum(MESSAGE_ROLES).exactOptional(),
});
