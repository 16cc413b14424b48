/**
 * Checks a history of forks, edits and regenerations. Pure.
 *
 * KILLVERSION-1  Every act is answered, and all its answers are equal: it has one turn, or one fork. Every turn belongs to an act.
 * KILLVERSION-2  Every turn completes with the answer of its script. A version names the turn that it replaces, and that turn names it.
 * KILLVERSION-3  A call has one operation id in all versions and forks. A `once` call is hit at most once, and a call that succeeded was
 *                hit. A call fails only if it acts once and a kill interrupted it.
 * KILLVERSION-4  A fork begins with the journal and the messages that its source had when the turn ended. The journals have no gaps.
 */
import { isDeepStrictEqual } from "node:util";
import type { TurnView } from "../../../src/protocol/conversation-schemas.ts";
import { textOf } from "../script.ts";
import { ACTS, type Act, type VersionsFinal, type VersionsHistory } from "./history.ts";

export function checkVersions(history: VersionsHistory): string[] {
  const finals = new Map(history.finals.map((final) => [final.conversation, final]));
  return [
    ...history.acts.flatMap((act) => answersAmiss(act, finals)),
    ...history.finals.flatMap((final) => [...turnsAmiss(final, history), ...callsAmiss(final, history)]),
    ...hitsAmiss(history),
    ...history.acts.flatMap((act) => (act.kind === "fork" ? forkAmiss(act, finals) : [])),
  ];
}

/** Returns what a part lacks. A part that caused too little proves too little. */
export function missingInVersions({ acts, kills }: VersionsHistory): string[] {
  return ACTS.flatMap((kind) => {
    const own = acts.filter((act) => act.kind === kind);
    if (own.length === 0) return [`No act is a ${kind}.`];
    const isRepeated = kind === "send" || own.some(({ lost }) => lost > 0);
    return isRepeated || kills.length < 20 ? [] : [`No kill interrupted a ${kind}.`];
  });
}

function answersAmiss(act: Act, finals: ReadonlyMap<string, VersionsFinal>): string[] {
  const { kind, key, answers, refused, conversation, of } = act;
  const name = `KILLVERSION-1 ${kind} ${key}`;
  if (refused !== undefined) return [`${name} was refused: ${refused}`];
  const [id = ""] = answers;
  if (new Set(answers).size !== 1) return [`${name} has the answers ${answers.join(", ")}`];
  if (kind === "fork") return finals.has(id) ? [] : [`${name} has lost its fork`];
  const turns = finals.get(conversation)?.turns ?? [];
  const turn = turns.find((one) => one.id === id);
  if (turn === undefined) return [`${name} has lost its turn`];
  const link = kind === "regenerate" ? turn.regenerates : kind === "edit" ? turn.edits : undefined;
  if (kind === "send") return [];
  const old = turns.find((one) => one.id === of);
  return [
    ...(link === of ? [] : [`KILLVERSION-2 ${kind} ${key} names ${link}, not ${of}`]),
    ...(old?.replacedBy === id ? [] : [`KILLVERSION-2 ${of} names ${old?.replacedBy}, not ${id}`]),
  ];
}

/** The turns that began in a conversation itself. */
function ownTurns({ journal, turns }: VersionsFinal): TurnView[] {
  const fork = journal.findLast(({ type }) => type === "conversation.forked")?.seq ?? 0;
  const started = journal.filter(({ type, seq }) => type === "turn.started" && seq > fork);
  return turns.filter(({ id }) => started.some(({ turnId }) => turnId === id));
}

function turnsAmiss(final: VersionsFinal, { acts }: VersionsHistory): string[] {
  return ownTurns(final).flatMap(({ id, status, answer, error }) => {
    const own = acts.filter(
      ({ conversation, answers, kind }) =>
        kind !== "fork" && conversation === final.conversation && answers.includes(id),
    );
    const [act] = own;
    if (act === undefined || own.length > 1) return [`KILLVERSION-1 ${id} belongs to ${own.length} acts`];
    if (status !== "completed") return [`KILLVERSION-2 ${act.key} is ${status}: ${error?.message}`];
    const due = textOf(act.script, act.script.rounds.length);
    return answer === due
      ? []
      : [`KILLVERSION-2 ${act.key} answers ${JSON.stringify(answer)}, not ${JSON.stringify(due)}`];
  });
}

function callsAmiss(final: VersionsFinal, { hits, kills }: VersionsHistory): string[] {
  return ownTurns(final).flatMap(({ moves }) =>
    moves.flatMap(({ toolCall, toolResult }) => {
      if (toolCall === undefined) return [];
      const name = `KILLVERSION-3 ${toolCall.name} ${toolCall.operationId}`;
      if (toolResult === undefined) return [`${name} has no outcome`];
      if (toolResult.success) {
        const call = new URL(String(Object(toolCall.input).url)).searchParams.get("call");
        return hits.some((hit) => hit.kind === "tool" && hit.call === call)
          ? []
          : [`${name} succeeded without a hit`];
      }
      const message = toolResult.error?.message ?? "";
      const isUnknown = toolCall.name === "once" && message.startsWith("Outcome unknown") && kills.length > 0;
      return isUnknown ? [] : [`${name} failed: ${message}`];
    }),
  );
}

function hitsAmiss({ hits }: VersionsHistory): string[] {
  const calls = Map.groupBy(
    hits.flatMap((hit) => (hit.kind === "tool" ? [hit] : [])),
    ({ call }) => call,
  );
  return [...calls].flatMap(([call, own]) => {
    const ids = new Set(own.map(({ operationId }) => operationId));
    return [
      ...(ids.size === 1 ? [] : [`KILLVERSION-3 ${call} has the operation ids ${[...ids].join(", ")}`]),
      ...(own[0]?.effect === "once" && own.length > 1
        ? [`KILLVERSION-3 ${call} acts once and was hit ${own.length} times`]
        : []),
    ];
  });
}

function forkAmiss(
  { key, conversation, answers: [id = ""] }: Act,
  finals: ReadonlyMap<string, VersionsFinal>,
): string[] {
  const [source, fork] = [finals.get(conversation), finals.get(id)];
  if (source === undefined || fork === undefined) return [];
  const cut = fork.journal.findLast(({ type }) => type === "conversation.forked")?.seq ?? 0;
  const copied = fork.journal.slice(0, cut - 1);
  const gaps = [source, fork].flatMap(({ conversation: of, journal }) =>
    journal.every(({ seq }, index) => seq === index + 1)
      ? []
      : [`KILLVERSION-4 the journal of ${of} has gaps`],
  );
  const turns = new Set(copied.flatMap(({ turnId }) => turnId ?? []));
  const messagesOf = ({ messages }: VersionsFinal) => messages.filter(({ turnId }) => turns.has(turnId));
  return [
    ...gaps,
    ...(cut > 0 && isDeepStrictEqual(copied, source.journal.slice(0, cut - 1))
      ? []
      : [`KILLVERSION-4 the journal of fork ${key} differs from its source`]),
    ...(isDeepStrictEqual(messagesOf(fork), messagesOf(source))
      ? []
      : [`KILLVERSION-4 the messages of fork ${key} differ from its source`]),
  ];
}
