/**
 * The SQL of requests that wait for people.
 *
 * A request has a row in `approvals`, and a row in `approvers` for each name that may answer it. Its key is the time of the request,
 * padded, and its id, so keys sort by time. Under a name, requests of one kind and of a similar time limit form a lane. In a lane, a
 * request that expired long ago comes before each request that still waits. So a list begins after the expired requests and merges the
 * lanes of the caller's names.
 */
import type { ListedApproval } from "../protocol/waiting-approvals.ts";
import { bothOrders, type ListKey, MAX_PAGE_BYTES, MAX_PAGE_SIZE } from "../shared/page.ts";

/** Returns a request as `PUT_APPROVALS` takes it. */
export function approvalRow({ approval, approvers }: ListedApproval) {
  const { operationId: id, kind, requestedAt, expiresAt, rule, requester } = approval;
  const createdAt = Date.parse(requestedAt);
  const end = expiresAt === undefined ? null : Date.parse(expiresAt);
  return {
    ...{ key: keyOf({ createdAt, id }), approvers, request: approval },
    lane: JSON.stringify([kind, end === null ? Number.MAX_SAFE_INTEGER : spanOf(end - createdAt)]),
    agentId: kind === "tool" ? approval.agentId : null,
    excluded: rule?.notRequester === true ? (requester ?? null) : null,
    expiresAt: end,
  };
}

export function keyOf({ createdAt, id }: ListKey): string {
  return `${Math.max(0, createdAt)}`.padStart(15, "0") + id;
}

export function ofKey(key: string): ListKey {
  return { createdAt: Number(key.slice(0, 15)), id: key.slice(15) };
}

/** Returns the time limit of a lane, in milliseconds: at least the time limit of each of its requests, and less than twice as long. */
function spanOf(milliseconds: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, milliseconds)));
}

/** Notes the number of the newest journal entry of a place. A late put cannot lower it. */
export const PUT_APPROVAL_PLACE = `INSERT INTO approval_places (tenant, place, seq) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET seq = excluded.seq WHERE excluded.seq > approval_places.seq`;

const IS_NEWEST = "?3 >= (SELECT seq FROM approval_places WHERE tenant = ?1 AND place = ?2)";

/** Each approver of each request in `?4`, a JSON list of `approvalRow`. */
const APPROVERS = "json_each(?4) AS item, json_each(item.value -> 'approvers') AS name";

export const REMOVE_APPROVERS = `DELETE FROM approvers WHERE tenant = ?1 AND place = ?2 AND ${IS_NEWEST}
  AND (name, lane, key) NOT IN (SELECT name.value, item.value ->> 'lane', item.value ->> 'key' FROM ${APPROVERS})`;

export const REMOVE_APPROVALS = `DELETE FROM approvals WHERE tenant = ?1 AND place = ?2 AND ${IS_NEWEST}
  AND key NOT IN (SELECT value ->> 'key' FROM json_each(?4))`;

/** The other columns follow from the request. */
export const PUT_APPROVALS = `INSERT INTO approvals (tenant, key, place, excluded, expires_at, request)
SELECT ?1, value ->> 'key', ?2, value ->> 'excluded', value ->> 'expiresAt', value -> 'request'
FROM json_each(?4) WHERE ${IS_NEWEST}
ON CONFLICT DO UPDATE SET excluded = excluded.excluded, expires_at = excluded.expires_at, request = excluded.request
WHERE excluded.request <> approvals.request`;

export const PUT_APPROVERS = `INSERT OR IGNORE INTO approvers (tenant, name, lane, key, place, agent_id)
SELECT ?1, name.value, item.value ->> 'lane', item.value ->> 'key', ?2, item.value ->> 'agentId'
FROM ${APPROVERS} WHERE ${IS_NEWEST}`;

/** A page of requests of this size has at most `MAX_PAGE_BYTES`. */
const MAX_LISTED_BYTES = Math.floor(MAX_PAGE_BYTES / MAX_PAGE_SIZE);

/** `?2` is a JSON list of keys. */
export const GET_APPROVALS =
  "SELECT key, request FROM approvals WHERE tenant = ?1 AND key IN (SELECT value FROM json_each(?2))";

/**
 * Returns the list of requests in both orders. The list reads the index of `scope`. `?9` is the place or the agent in that index. The list
 * has the bytes of each request. Requests of more than `MAX_LISTED_BYTES` are `null`: `GET_APPROVALS` reads them.
 *
 * `?1` is the tenant, `?2` the key to continue after and `?3` the number of rows. `?4` is a JSON list of the caller's names and `?5` the
 * subject. `?6` is the time. Requests count since the time `?7`. Filters follow, `null` if absent: `?8` the kind, `?10` the agent, `?11`
 * the conversation and `?12` the run.
 */
function listApprovals(scope: "" | "place" | "agent_id", index: string) {
  const rows = `approvers ${index} WHERE tenant = ?1${scope && ` AND ${scope} = ?9`}`;
  return bothOrders((_comparison, order) => {
    const range =
      order === "ASC"
        ? "approvers.key > MAX(found.key, found.floor)"
        : "approvers.key < found.key AND approvers.key > found.floor";
    // The queue of `found` has the next key of each lane: the recursion takes the first key and adds the key after it. An ORDER BY of the whole
    // would read all keys.
    return `WITH RECURSIVE
lanes (name, lane) AS (
  SELECT value, (SELECT MIN(lane) FROM ${rows} AND name = value) FROM json_each(?4)
  UNION ALL
  SELECT name, (SELECT MIN(lane) FROM ${rows} AND approvers.name = lanes.name AND approvers.lane > lanes.lane)
  FROM lanes WHERE lane IS NOT NULL
),
found (name, lane, floor, key) AS (
  SELECT name, lane, printf('%015d', MAX(?6 - (lane ->> 1) + 1, ?7)), ?2
  FROM lanes WHERE lane IS NOT NULL AND (?8 IS NULL OR lane ->> 0 = ?8)
  UNION ALL
  SELECT name, lane, floor, (
    SELECT key FROM ${rows} AND approvers.name = found.name AND approvers.lane = found.lane AND ${range}
    ORDER BY key ${order} LIMIT 1)
  FROM found WHERE key IS NOT NULL
  ORDER BY 4 ${order}
)
SELECT approvals.key, LENGTH(CAST(request AS BLOB)) AS bytes,
  CASE WHEN LENGTH(CAST(request AS BLOB)) <= ${MAX_LISTED_BYTES} THEN request END AS request
FROM (SELECT DISTINCT key FROM found WHERE key <> ?2) AS one
CROSS JOIN approvals ON approvals.tenant = ?1 AND approvals.key = one.key
WHERE (excluded IS NULL OR excluded <> ?5) AND (expires_at IS NULL OR expires_at > ?6)
  AND (?10 IS NULL OR request ->> 'agentId' = ?10)
  AND (?11 IS NULL OR request ->> 'conversationId' = ?11)
  AND (?12 IS NULL OR request ->> 'runId' = ?12)
LIMIT ?3`;
  });
}

/** The lists of requests, by the index that they read. */
export const LIST_APPROVALS = {
  all: listApprovals("", ""),
  place: listApprovals("place", "INDEXED BY approvers_by_place"),
  agent: listApprovals("agent_id", "INDEXED BY approvers_by_agent"),
};
