/** One turn in the list: a row on large screens, and a card on small screens. */
import type { TurnRecord } from "../../../../src/client/index.ts";
import {
  amountsText,
  calledText,
  count,
  durationText,
  momentOf,
  STOP_CODE,
  titleFrom,
} from "../../format.ts";
import { turnPath } from "../../route.ts";
import { Link } from "../link.tsx";
import { TurnStatusBadge } from "./turn-status.tsx";

/** Characters of a message, and names of tools, in a row. */
const MAX_TEXT = 120;
const MAX_TOOLS = 3;

export function TurnRow({ turn, agentName }: { turn: TurnRecord; agentName: string }) {
  const { id, conversationId, errorCode, issues, createdAt, completedAt, tools, usage, cost, userId } = turn;
  const { replacedBy, targetKinds } = turn;
  const text = titleFrom(turn.messages[0]?.text ?? "", MAX_TEXT);
  const took = completedAt === null ? undefined : Date.parse(completedAt) - Date.parse(createdAt);
  const tokens = usage === null ? undefined : usage.inputTokens + usage.outputTokens;
  const amounts = amountsText({ ...(tokens === undefined ? {} : { tokens }), usd: cost ?? 0 });
  const called = calledText({
    hasAgents: targetKinds.includes("agent"),
    hasRuns: targetKinds.includes("workflow"),
  });
  const more = tools.length > MAX_TOOLS ? ` and ${tools.length - MAX_TOOLS} more` : "";
  return (
    <li>
      <Link
        to={turnPath(conversationId, id)}
        data-testid="turn-row"
        data-turn={id}
        className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 gap-y-1 px-4 py-2.5 text-xs hover:bg-sunken md:grid-cols-[6.5rem_minmax(0,1fr)_11rem_5rem_6.5rem]"
      >
        <TurnStatusBadge {...turn} />
        <span className="text-right text-muted tabular-nums md:order-last">
          <time dateTime={createdAt}>{momentOf(createdAt, new Date())}</time>
        </span>
        <span className="col-span-2 min-w-0 md:col-span-1">
          <span className="block truncate text-sm">{text === "" ? "A turn without a message" : text}</span>
          <span className="flex min-w-0 flex-wrap gap-x-2 text-muted">
            <span className="font-medium">{agentName}</span>
            {userId !== undefined && <span className="truncate">for {userId}</span>}
            {tools.length > 0 && (
              <span className="min-w-0 truncate font-mono">
                {tools.slice(0, MAX_TOOLS).join(", ") + more}
              </span>
            )}
            {issues?.toolFailures !== undefined && (
              <span className="text-caution">
                {count(issues.toolFailures, "tool call failed", "tool calls failed")}
              </span>
            )}
            {replacedBy !== undefined && <span>replaced</span>}
            {errorCode !== undefined && errorCode !== STOP_CODE && (
              <span className="font-mono text-danger">{errorCode}</span>
            )}
          </span>
        </span>
        <span className="text-muted tabular-nums md:text-right">
          {amounts}
          {amounts !== "" && called !== undefined && <span className="md:block"> without {called}</span>}
        </span>
        <span className="text-right text-muted tabular-nums">{took !== undefined && durationText(took)}</span>
      </Link>
    </li>
  );
}
