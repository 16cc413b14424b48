/**
 * Policies: lists of rules that decide about calls of tools. Pure.
 *
 * POLICY-1  The first rule that matches a call decides. A call that no rule matches is allowed.
 * POLICY-2  A rule matches a call if each of its members does. A rule without such members matches every call.
 * POLICY-8  A rule that denies or asks also matches a tool by the task, the workflow or the agent behind it, because authors choose names of tools.
 * POLICY-9  A rule that denies or asks for `shell_exec` also matches `shell_start`, which runs a command, too.
 * POLICY-6  `paths` and `hosts` match if any path or host in the input does (CALLTEXT-1, CALLTEXT-2). A rule with `hosts` that allows matches only
 *           an input with hosts, if all of them match. The host of a remote agent counts as a host in the input of its calls.
 */
import { z } from "zod";
import { TOOL_EFFECTS } from "../protocol/definition-parts.ts";
import type { ToolTarget } from "../protocol/definitions.ts";
import { matchesName, toolPatterns } from "../protocol/tool-patterns.ts";
import { invalid } from "../shared/errors.ts";
import { validate } from "../shared/validation.ts";
import { DECISIONS, type Gate } from "./gate.ts";
import { glob, pathMatcher } from "./globs.ts";
import { hostOf, type Inspection, inspect, matchesHost } from "./inspection.ts";

const MAX_RULES = 200;
const MAX_NAMES = 200;

const ids = z.array(z.string().min(1)).min(1).max(MAX_NAMES).exactOptional();

const host = z
  .string()
  .max(255)
  .refine((name) => {
    const plain = name.replace(/^\*\./, "");
    return name === "*" || (!plain.includes("*") && hostOf(plain) === plain);
  }, "Must be a host as in a URL, without a port, such as `example.com`, `*.example.com`, or `*` for all.");

const ruleSchema = z.strictObject({
  /** The name of the rule in the journal, in errors and in requests for approval. */
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "Must be small letters, digits, dots and dashes."),
  tools: toolPatterns.exactOptional(),
  effects: z.array(z.enum(TOOL_EFFECTS)).min(1).exactOptional(),
  tenants: ids,
  projects: ids,
  agents: ids,
  /** Globs. A glob without a slash matches in each folder. */
  paths: z.array(glob).min(1).max(MAX_NAMES).exactOptional(),
  /** Exact hosts, `*.example.com` for all hosts below, or `*`. */
  hosts: z.array(host).min(1).max(MAX_NAMES).exactOptional(),
  /** The rule matches only calls that untrusted content has led to. */
  tainted: z.literal(true).exactOptional(),
  then: z.enum(DECISIONS),
  /** A sentence for the model and for people. */
  reason: z.string().min(1).max(500).exactOptional(),
});

/** A rule of a policy. Absent members match all calls. */
export type PolicyRule = z.infer<typeof ruleSchema>;

/**
 * Returns the gate of a policy. Throws `INVALID_INPUT` for an invalid rule, and for two rules with one id.
 * @example policyOf([{ id: "no-refunds", tools: ["refund"], then: "deny", reason: "Refunds are for people." }])
 */
export function policyOf(rules: readonly PolicyRule[]): Gate {
  const checked = validate(z.array(ruleSchema).max(MAX_RULES), rules, "", "The policy");
  const allowing = checked.find(({ paths, then }) => paths !== undefined && then === "allow");
  if (allowing !== undefined)
    throw invalid(
      `The rule "${allowing.id}" allows by \`paths\`, but the input may have other paths, too. Deny or ask for the paths that are not allowed.`,
    );
  const twice = checked.find(({ id }, index) => checked.findIndex((other) => other.id === id) !== index);
  if (twice !== undefined) throw invalid(`The policy has two rules with the id "${twice.id}". Rename one.`);
  const compiled = checked.map((rule) => ({
    ...rule,
    ...(rule.paths && { isPath: pathMatcher(rule.paths) }),
  }));
  return (tool, input, { tenant, projectId, agentId, taint }) => {
    let found: Inspection | undefined;
    const inspection = () => (found ??= withTarget(inspect(input), tool.target));
    const names = [tool.name, ...(ALSO[tool.name] ?? []), ...targetNames(tool.target)];
    const rule = compiled.find(
      ({ tools, effects, tenants, projects, agents, tainted, isPath, hosts, then }) =>
        (tools === undefined ||
          (then === "allow" ? [tool.name] : names).some((name) => matchesName(tools, name))) &&
        (effects?.includes(tool.effect) ?? true) &&
        (tenants?.includes(tenant) ?? true) &&
        (projects?.includes(projectId) ?? true) &&
        (agents?.includes(agentId) ?? true) &&
        (tainted !== true || taint.length > 0) &&
        (isPath === undefined || inspection().isOpaque || inspection().paths.some(isPath)) &&
        (hosts === undefined || matchesHosts(hosts, then, inspection())),
    );
    if (rule === undefined) return "allow";
    const { id, then, reason } = rule;
    return { decision: then, rule: id, ...(reason !== undefined && { reason }) };
  };
}

/** Names of tools that rules for another tool bind, too (POLICY-9). */
const ALSO: Readonly<Record<string, readonly string[]>> = { shell_start: ["shell_exec"] };

/** Returns the id of the definition or the agent behind a tool (POLICY-8). */
function targetNames(target: ToolTarget | undefined): string[] {
  if (target === undefined) return [];
  if ("agent" in target) return [target.agent];
  if ("a2a" in target) return [];
  const reference = "task" in target ? target.task : target.workflow;
  return [typeof reference === "string" ? reference.replace(/^.*\/|@.*$/g, "") : reference.id];
}

/** Returns what a call reaches: its remote agent has a host, too. */
function withTarget(found: Inspection, target: ToolTarget | undefined): Inspection {
  if (target === undefined || !("a2a" in target)) return found;
  const host = hostOf(new URL(target.a2a).host);
  return { ...found, hosts: [...found.hosts, ...(host === undefined ? [] : [host])] };
}

function matchesHosts(
  listed: readonly string[],
  then: PolicyRule["then"],
  { hosts, isOpaque }: Inspection,
): boolean {
  const isListed = (name: string) => matchesHost(listed, name);
  if (then === "allow") return !isOpaque && hosts.length > 0 && hosts.every(isListed);
  return isOpaque || hosts.some(isListed);
}
