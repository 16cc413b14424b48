/**
 * Checks of a workflow that do not follow its graph. Pure.
 *
 * FLOWCHECK-1  Nodes, transitions and groups that a workflow names exist, and each name is unique:
 *              `DUPLICATE_NODE_REF`, `DUPLICATE_TRANSITION_REF`, `INVALID_NODE_REF`, `INVALID_SIBLING_GROUP`.
 * FLOWCHECK-2  Every expression compiles with the names in its scope. Every schema is valid.
 */
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { compileExpression } from "../../shared/expressions/expression.ts";
import { checkName, ExpressionError } from "../../shared/expressions/values.ts";
import { Patterns } from "../../shared/json-schema/pattern.ts";
import { readSchema } from "../../shared/json-schema/read-schema.ts";
import { idLister } from "../../shared/known-ids.ts";
import { issueAt, jsonPointer } from "../../shared/validation.ts";
import { inputSchemaIssues } from "../definitions/input-schema.ts";
import {
  itemNames,
  nodeExpressions,
  outputExpressions,
  type PlacedExpression,
  TAKEN_NAMES,
  transitionExpressions,
} from "./expressions.ts";
import { firstIssues } from "./first-issues.ts";
import { mergeSourceProblem, writtenPathProblem } from "./paths.ts";
import { MAX_ITEM_NAMES, MAX_WORKFLOW_EXPRESSIONS, MAX_WRITTEN_PATHS } from "./workflow-limits.ts";

/** Issues, generated lazily so that issues beyond the limit are not computed. */
type Issues = Generator<InputIssue, void>;

/** Returns the first problems of a definition that has passed `workflowSchema`. */
export function formIssues(definition: WorkflowDefinition): InputIssue[] {
  const graph = firstIssues(graphIssues(definition));
  const found = graph.length > 0 ? graph : firstIssues(contentIssues(definition));
  return found.map(({ path, message }) => issueAt(path, message));
}

function* graphIssues(definition: WorkflowDefinition): Issues {
  yield* refIssues(definition);
  yield* transitionIssues(definition);
  yield* itemIssues(definition);
}

function* contentIssues(definition: WorkflowDefinition): Issues {
  yield* valueIssues(definition);
  yield* expressionIssues(definition);
}

function* refIssues({ nodes, transitions, initialNode }: WorkflowDefinition): Issues {
  const known = nodes.map(({ ref }) => ref);
  const set = new Set(known);
  const listed = idLister(known);
  function* missing(path: string, ref: string): Issues {
    if (!set.has(ref))
      yield { path, message: `INVALID_NODE_REF: There is no node "${ref}". Known nodes: ${listed(ref)}.` };
  }
  yield* repeated(known, "nodes", "DUPLICATE_NODE_REF: Another node");
  yield* repeated(
    transitions.map(({ ref }) => ref),
    "transitions",
    "DUPLICATE_TRANSITION_REF: Another transition",
  );
  yield* missing("/initialNode", initialNode);
  for (const [index, { from, to }] of transitions.entries()) {
    yield* missing(`/transitions/${index}/from`, from);
    yield* missing(`/transitions/${index}/to`, to);
  }
}

function* repeated(refs: readonly string[], list: string, what: string): Issues {
  const known = new Set<string>();
  for (const [index, ref] of refs.entries()) {
    const message = `${what} is named "${ref}", too. Give one of them another \`ref\`.`;
    if (known.has(ref)) yield { path: `/${list}/${index}/ref`, message };
    known.add(ref);
  }
}

function* transitionIssues({ transitions }: WorkflowDefinition): Issues {
  const groups = new Set(transitions.flatMap(({ siblingGroup }) => siblingGroup ?? []));
  const listed = idLister([...groups]);
  for (const [
    index,
    { ref, to, siblingGroup, synchronization, spawnCount, foreach },
  ] of transitions.entries()) {
    const at = (path: string, message: string): InputIssue => ({
      path: `/transitions/${index}${path}`,
      message,
    });
    if (spawnCount !== undefined && foreach !== undefined)
      yield at(
        "/spawnCount",
        `Transition "${ref}" has \`foreach\`, too, which makes a token for each item. Remove one.`,
      );
    if (foreach !== undefined && TAKEN_NAMES.includes(foreach.itemVar))
      yield at(
        "/foreach/itemVar",
        `"${foreach.itemVar}" is the name of something else. Choose another name.`,
      );
    if (synchronization === undefined) continue;
    if (siblingGroup !== undefined || spawnCount !== undefined || foreach !== undefined)
      yield at(
        "/synchronization",
        `INVALID_SIBLING_GROUP: Transition "${ref}" joins branches, so it cannot start branches. Start them with a transition from "${to}".`,
      );
    const group = synchronization.siblingGroup;
    if (!groups.has(group))
      yield at(
        "/synchronization/siblingGroup",
        `INVALID_SIBLING_GROUP: No transition has the \`siblingGroup\` "${group}". Known groups: ${listed(group)}.`,
      );
  }
}

function* itemIssues(definition: WorkflowDefinition): Issues {
  const names = itemNames(definition);
  for (const [index, { ref }] of definition.nodes.entries()) {
    const { size = 0 } = names.get(ref) ?? {};
    if (size > MAX_ITEM_NAMES)
      yield {
        path: `/nodes/${index}`,
        message: `The transitions to node "${ref}" give the items of \`foreach\` ${size} names. The maximum is ${MAX_ITEM_NAMES}. Use one \`itemVar\` in several transitions.`,
      };
  }
}

function* valueIssues(definition: WorkflowDefinition): Issues {
  const { inputSchema, contextSchema, outputSchema } = definition;
  const patterns = new Patterns();
  yield* inputSchemaIssues(inputSchema, "/inputSchema", patterns);
  if (contextSchema !== undefined) yield* inputSchemaIssues(contextSchema, "/contextSchema", patterns);
  if (outputSchema !== undefined) yield* readSchema(outputSchema, "/outputSchema", patterns).issues;
  yield* limitIssues(definition);
  yield* pathIssues(definition);
}

/** Only an agent that is called has its time limit in the node. */
function* limitIssues({ nodes }: WorkflowDefinition): Issues {
  for (const [index, { ref, agent, mode, timeoutMs }] of nodes.entries()) {
    if (timeoutMs === undefined || (agent !== undefined && mode !== "loop_in")) continue;
    const instead =
      agent === undefined
        ? "Set the time limit in the task or in the sub-workflow"
        : 'Remove it, or use the mode "delegate"';
    yield {
      path: `/nodes/${index}/timeoutMs`,
      message: `Node "${ref}" does not call an agent in a separate conversation, so it cannot have its own time limit. ${instead}.`,
    };
  }
}

function* pathIssues({ nodes, transitions }: WorkflowDefinition): Issues {
  const byNodes = nodes.map(({ outputMapping = {} }) => Object.keys(outputMapping));
  const merges = transitions.map(({ synchronization }) => synchronization?.merge);
  const count = byNodes.flat().length + merges.filter((merge) => merge !== undefined).length;
  if (count > MAX_WRITTEN_PATHS) {
    yield {
      path: "",
      message: `The nodes and merges of a workflow write at most ${MAX_WRITTEN_PATHS} paths together. These write ${count}. Write objects in place of their members, or move parts into sub-workflows.`,
    };
    return;
  }
  for (const [index, paths] of byNodes.entries())
    for (const path of paths)
      yield* issueOf(writtenPathProblem(path), jsonPointer([path], `/nodes/${index}/outputMapping`));
  for (const [index, merge] of merges.entries()) {
    if (merge === undefined) continue;
    const base = `/transitions/${index}/synchronization/merge`;
    yield* issueOf(mergeSourceProblem(merge.source), `${base}/source`);
    yield* issueOf(writtenPathProblem(merge.target), `${base}/target`);
  }
}

function issueOf(problem: string | null, path: string): InputIssue[] {
  return problem === null ? [] : [{ path, message: problem }];
}

function* expressionIssues(definition: WorkflowDefinition): Issues {
  const all: PlacedExpression[] = [
    ...[...nodeExpressions(definition).values()].flatMap(({ input, output }) => [...input, ...output]),
    ...transitionExpressions(definition).flat(),
    ...outputExpressions(definition),
  ];
  const length = all.reduce((sum, { source }) => sum + source.length, 0);
  if (length > MAX_WORKFLOW_EXPRESSIONS) {
    yield {
      path: "",
      message: `The expressions of a workflow have at most ${MAX_WORKFLOW_EXPRESSIONS} characters together. These have ${length}. Move work into tasks or sub-workflows.`,
    };
    return;
  }
  // By the list of names, which the expressions of a node share: the names themselves are long.
  const compiled = new Map<readonly string[], Set<string>>();
  const compile = ({ source, names }: PlacedExpression) => {
    const sources = compiled.get(names) ?? new Set();
    if (!sources.has(source)) compileExpression(source, names);
    compiled.set(names, sources.add(source));
  };
  for (const expression of all) yield* problemAt(expression.path, () => compile(expression));
  for (const [index, { inputMapping = {} }] of definition.nodes.entries())
    yield* nameIssues(inputMapping, `/nodes/${index}/inputMapping`);
  yield* nameIssues(definition.outputMapping ?? {}, "/outputMapping");
}

function* nameIssues(mapping: object, base: string): Issues {
  for (const name of Object.keys(mapping)) yield* problemAt(jsonPointer([name], base), () => checkName(name));
}

function problemAt(path: string, check: () => unknown): InputIssue[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof ExpressionError) return [{ path, message: error.message }];
    throw error;
  }
}
