/**
 * Alternative forms of the fields of a workflow, and its defaults, so that equal workflows are equal JSON.
 *
 * FLOWFORM-1  `taskId` with `taskVersion`, `subworkflowId` with `subworkflowVersion`, `workflowId` with
 *             `workflowVersion`, and `agentId` with `invocationMode` mean `task`, `workflow`, and `agent` with
 *             `mode`. `initialNodeId`, `fromNodeId` and `toNodeId` mean `initialNode`, `from` and `to`. `null` means
 *             absent.
 * FLOWFORM-2  A definition has its references as text, its strategies as `any`, `all` or `{mOfN}`, and its defaults
 *             written out. A workflow in TypeScript equals the same workflow in JSON.
 */
import { defined } from "../../shared/defined.ts";
import { isPlainObject } from "../../shared/json.ts";
import { cut } from "../../shared/text.ts";

/** Fields of an object from outside. */
type Fields = Record<string, unknown>;

export type Report = (path: PropertyKey[], message: string) => void;

/** The field names for a node's target: the field, and its version or mode. */
const OWNERS = [
  { owner: "task", field: "task", detail: null },
  { owner: "task", field: "taskId", detail: "taskVersion" },
  { owner: "workflow", field: "workflow", detail: null },
  { owner: "workflow", field: "workflowId", detail: "workflowVersion" },
  { owner: "workflow", field: "subworkflowId", detail: "subworkflowVersion" },
  { owner: "agent", field: "agent", detail: "mode" },
  { owner: "agent", field: "agentId", detail: "invocationMode" },
] as const;
const OWNER_FIELDS = OWNERS.map(({ field }) => field);
const DETAIL_FIELDS = OWNERS.flatMap(({ detail }) => detail ?? []);

/** Fields that are of use only to a node that runs something. */
const NEEDS_OWNER = ["inputMapping", "resourceBindings", ...DETAIL_FIELDS];

/** Returns the fields of a workflow without the other forms. Reports fields that contradict each other. */
export function workflowFields(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  const { initialNodeId, ...fields } = withoutNulls(value);
  return {
    ...fields,
    ...defined({ initialNode: fields.initialNode ?? initialNodeId }),
    transitions: fields.transitions ?? [],
    ...(fields.timeoutMs === undefined ? {} : { onTimeout: fields.onTimeout ?? "human_gate" }),
  };
}

export function nodeFields(value: unknown, report: Report): unknown {
  if (!isPlainObject(value)) return value;
  const fields = withoutNulls(value);
  const others = Object.fromEntries(
    Object.entries(fields).filter(([name]) => ![...OWNER_FIELDS, ...DETAIL_FIELDS].includes(name as never)),
  );
  const found = OWNERS.filter(({ field }) => fields[field] !== undefined);
  const [own] = found;
  if (found.length > 1) {
    const names = found.map(({ field }) => `\`${field}\``).join(" and ");
    report(
      [],
      `MULTIPLE_OWNERS: ${nodeName(fields)} names ${names}. A node runs one thing: keep one of them.`,
    );
    return others;
  }
  if (own === undefined) {
    const [unused] = NEEDS_OWNER.filter((name) => fields[name] !== undefined);
    if (unused !== undefined)
      report(
        [unused],
        `MISSING_OWNER: ${nodeName(fields)} has no target, so \`${unused}\` has no effect. Name its \`task\`, \`workflow\` or \`agent\`, or remove the field.`,
      );
    return others;
  }
  const misplaced = DETAIL_FIELDS.filter((name) => fields[name] !== undefined && name !== own.detail);
  for (const name of misplaced) report([name], `Does not belong to \`${own.field}\`. Remove it.`);
  const detail = own.detail === null ? undefined : fields[own.detail];
  if (own.owner === "agent")
    return { ...others, agent: fields[own.field], ...defined({ mode: detail ?? "delegate" }) };
  return { ...others, [own.owner]: referenceText(fields[own.field], detail) };
}

/** Returns the fields of a transition without the other forms, with its defaults. */
export function transitionFields(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  const { fromNodeId, toNodeId, ...fields } = withoutNulls(value);
  const ends = { from: fields.from ?? fromNodeId, to: fields.to ?? toNodeId };
  return {
    ...fields,
    ...defined(ends),
    ref: fields.ref ?? `${ends.from}-${ends.to}`,
    priority: fields.priority ?? 0,
    ...(isPlainObject(fields.synchronization)
      ? { synchronization: synchronizationFields(fields.synchronization) }
      : {}),
  };
}

function synchronizationFields(value: Fields): Fields {
  const fields = withoutNulls(value);
  return {
    ...fields,
    strategy: strategyOf(fields.strategy),
    onTimeout: fields.onTimeout ?? "fail",
    // A limit of 0 means no limit.
    ...(fields.timeoutMs === 0 ? { timeoutMs: undefined } : {}),
  };
}

function strategyOf(value: unknown): unknown {
  const [, count] = typeof value === "string" ? (/^m_of_n:(-?\d{1,9})$/.exec(value) ?? []) : [];
  return count === undefined ? value : { mOfN: Number(count) };
}

/** Returns a reference as text. `version` may be a number or text. */
function referenceText(reference: unknown, version: unknown): unknown {
  const suffix = version === undefined ? "" : `@${version}`;
  if (typeof reference === "string") return `${reference}${suffix}`;
  if (!isPlainObject(reference)) return reference;
  const { library, id, version: own, ...others } = reference;
  if (Object.keys(others).length > 0 || typeof library !== "string" || typeof id !== "string")
    return reference;
  return `${library}/${id}${own === undefined ? suffix : `@${own}`}`;
}

function withoutNulls(value: Fields): Fields {
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== null && member !== undefined),
  );
}

function nodeName({ ref }: Fields): string {
  return typeof ref === "string" ? `Node "${cut(ref, 64)}"` : "The node";
}
