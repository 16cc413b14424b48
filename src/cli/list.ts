/** `dramatis list` and `dramatis dead-letters list`: one page of a list. */
import type { PageRequest } from "../client/options.ts";
import type { TurnRecord } from "../protocol/turn-records.ts";
import { defined } from "../shared/defined.ts";
import type { Cli, Command, Options } from "./command.ts";
import { wrongUsage } from "./failure.ts";
import { type Column, clean, count, duration, questionText, table, time } from "./text.ts";

const PAGE_OPTIONS = {
  "--limit <n>": "items of the page, 20 by default",
  "--cursor <cursor>": "continue after an earlier page",
};

const TIME_OPTIONS = {
  "--since <time>": "from a month, day or time on: 2026-05, 2026-05-03, 2026-05-03T12:00:00Z",
  "--until <time>": "before a time, or until the end of a day or month, in UTC",
};

type Page<Item> = readonly [value: { nextCursor?: string }, items: readonly Item[]];

interface List<Item> {
  name: string;
  about: string;
  args?: Record<string, string>;
  options?: Record<string, string>;
  columns: readonly Column[];
  /** Reads a page. `filter` has the options of the list itself. */
  read(cli: Cli, page: PageRequest, filter: Options, args: (string | undefined)[]): Promise<Page<Item>>;
  row(item: Item): string[];
}

function listCommand<Item>({ name, about, args, options, columns, read, row }: List<Item>): Command {
  return {
    name,
    about,
    ...(args && { args }),
    options: { ...PAGE_OPTIONS, ...options },
    async run(cli, given, { limit = "20", cursor, url: _url, ...filter }) {
      if (!/^[1-9][0-9]{0,2}$/.test(limit))
        throw wrongUsage(`--limit must be a whole number from 1 to 200, not "${limit}".`);
      const page = { limit: Number(limit), signal: cli.signal, ...defined({ cursor }) };
      const [value, items] = await read(cli, page, filter, given);
      const next = value.nextCursor === undefined ? "" : `\nMore: --cursor ${clean(value.nextCursor)}`;
      const text = items.length === 0 ? "The list is empty." : table(columns, items.map(row), cli.width);
      return { value, text: text + next };
    },
  };
}

/** Returns the end of a turn in a few words. A turn that was stopped has not failed. */
export function resultOf({ status, errorCode, issues, replacedBy }: TurnRecord): string {
  const failed = errorCode === "CANCELLED" ? undefined : issues?.toolFailures;
  return [
    errorCode === "CANCELLED" ? "stopped" : errorCode === undefined ? status : `${status} ${errorCode}`,
    ...(failed ? [count(failed, "failed tool call")] : []),
    ...(replacedBy === undefined ? [] : ["replaced"]),
  ].join(", ");
}

const id: Column = { title: "ID" };
const status: Column = { title: "STATUS" };
const created: Column = { title: "CREATED" };
const free = (title: string): Column => ({ title, free: true });

export const LIST_COMMANDS: readonly Command[] = [
  listCommand({
    name: "list conversations",
    about: "conversations, the newest first",
    columns: [id, free("AGENT"), created, free("TITLE")],
    async read({ client }, page) {
      const value = await client.conversations.list({ order: "desc", ...page });
      return [value, value.conversations];
    },
    row: ({ id, agentId, createdAt, title }) => [id, agentId, time(createdAt), title ?? ""],
  }),
  listCommand({
    name: "list agents",
    about: "agents",
    columns: [id, created, free("PROJECTS")],
    async read({ client }, page) {
      const value = await client.agents.list(page);
      return [value, value.agents];
    },
    row: ({ id, createdAt, projectIds }) => [id, time(createdAt), projectIds.join(", ")],
  }),
  listCommand({
    name: "list runs",
    about: "runs of workflows, the newest first",
    options: {
      "--status <status>": "runs with this status, such as failed",
      "--workflow <name>": "runs of library/id, or of library/id@version",
      "--text <text>": "runs with this text in their name or in the name of their workflow",
    },
    columns: [id, status, created, free("NAME")],
    async read({ client }, page, filter) {
      // SAFETY: the server checks the values of a filter.
      const value = await client.runs.list({ order: "desc", ...page, ...(filter as object) });
      return [value, value.runs];
    },
    row: ({ id, name, status, errorCode, createdAt, workflow: { library, id: flow, version } }) => [
      id,
      errorCode === undefined ? status : `${status} ${errorCode}`,
      time(createdAt),
      `${name ?? ""} ${library}/${flow}@${version}`.trim(),
    ],
  }),
  listCommand({
    name: "list turns",
    about: "turns, the newest first: of all conversations, or of one conversation",
    args: { "[conversation]": "id of a conversation" },
    options: {
      "--status <status>": "active, completed, failed, or stopped; failed leaves out stopped turns",
      "--issues <kind>": "tool: turns with a failed call of a tool, also if the turn completed",
      "--agent <id>": "turns of this agent",
      "--user <id>": "turns that this person caused",
      "--tool <name>": "turns that called library/id",
      "--run <id>": "turns that this run started",
      ...TIME_OPTIONS,
    },
    columns: [
      ...[{ title: "CONVERSATION AND TURN" }, created, { title: "TOOK" }],
      ...[free("AGENT"), free("USER"), free("RESULT"), free("MESSAGE")],
    ],
    async read({ client }, page, filter, [conversation]) {
      const request = { order: "desc", ...page, ...defined({ conversation }) } as const;
      // SAFETY: the server checks the values of a filter.
      const value = await client.turns.list({ ...request, ...(filter as object) });
      return [value, value.turns];
    },
    row: (turn) => [
      `${turn.conversationId} ${turn.id}`,
      time(turn.createdAt),
      turn.completedAt === null ? "" : duration(Date.parse(turn.completedAt) - Date.parse(turn.createdAt)),
      turn.agentId,
      turn.userId ?? "",
      resultOf(turn),
      turn.messages[0]?.text ?? "",
    ],
  }),
  listCommand({
    name: "search",
    about: "finds messages by their words in all conversations, the newest first",
    args: { "<words...>": "words that a message must contain" },
    options: {
      "--role <role>": "user or agent: who wrote the message",
      "--agent <id>": "messages of turns of this agent",
      "--user <id>": "messages of turns that this person caused",
      ...TIME_OPTIONS,
    },
    columns: [{ title: "CONVERSATION AND TURN" }, created, free("AGENT"), free("FROM"), free("TEXT")],
    async read({ client }, page, filter, words) {
      // SAFETY: the server checks the values of a filter.
      const value = await client.messages.search({ q: words.join(" "), ...page, ...(filter as object) });
      return [value, value.messages];
    },
    row: ({ conversationId, turnId, time: at, agentId, userId, role, snippet }) => [
      ...[`${conversationId} ${turnId}`, time(at), agentId],
      ...[role === "agent" ? "agent" : (userId ?? "user"), snippet],
    ],
  }),
  listCommand({
    name: "list approvals",
    about: "calls of tools and questions that wait for you",
    columns: [{ title: "PLACE AND OPERATION" }, free("QUESTION")],
    async read({ client }, page) {
      const value = await client.approvals.list(page);
      return [value, value.approvals];
    },
    row: (item) =>
      item.kind === "tool"
        ? [
            `${item.conversationId} ${item.operationId}`,
            `${item.name}${questionText(item.elicitation)} ${JSON.stringify(item.input ?? {})}`,
          ]
        : [`${item.runId} ${item.operationId}`, item.prompt],
  }),
  listCommand({
    name: "dead-letters list",
    about: "messages between actors that could not be delivered, for operators",
    columns: [id, free("TYPE"), { title: "DIED" }, free("ERROR")],
    async read({ client }, page) {
      const value = await client.deadLetters.list(page);
      return [value, value.deadLetters];
    },
    row: ({ id, type, diedAt, error }) => [id, type, time(diedAt), `${error.code}: ${error.message}`],
  }),
];
