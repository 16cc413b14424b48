/**
 * Compares the schemas of written values and of their readers. Pure.
 *
 * SOUND-9  If schemas are known, a node's values fit its input, writes fit `contextSchema`, and the output of the run
 *          fits `outputSchema`. Every required member is present, and the types overlap.
 */
import type { WorkflowDefinition, WorkflowNode } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import type { Mapping } from "../../../shared/expressions/mapping.ts";
import type { ReadPath } from "../../../shared/expressions/reads.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { jsonPointer } from "../../../shared/validation.ts";
import { memberOf, mismatch, requiredOf } from "../../definitions/schema-paths.ts";
import { namesOf } from "../paths.ts";
import type { Liveness } from "./liveness.ts";
import type { ReadsOf } from "./reads.ts";

/** The schemas of a task or a workflow; `null` where one is unknown. */
export interface KnownSchemas {
  input: JsonObject | null;
  output: JsonObject | null;
}

/** Returns the schemas of a node's target, or `null` if they are unknown. The reference is unresolved. */
export type Lookup = (kind: "task" | "workflow", reference: string) => KnownSchemas | null;

/** The variables of an expression that have known schemas. */
type Variables = Readonly<Record<string, JsonObject | null>>;

/** Returns the mismatches of schemas (SOUND-9), node by node. */
export function schemaIssues(
  definition: WorkflowDefinition,
  liveness: Liveness,
  lookup: Lookup,
  readsOf: ReadsOf,
): Iterable<InputIssue> {
  return new SchemaCheck(definition, lookup, readsOf).issues(liveness);
}

class SchemaCheck {
  readonly #outputs = new Map<string, (JsonObject | null)[]>();

  constructor(
    private readonly definition: WorkflowDefinition,
    private readonly lookup: Lookup,
    private readonly readsOf: ReadsOf,
  ) {
    for (const node of definition.nodes)
      for (const [path, source] of Object.entries(node.outputMapping ?? {}))
        if (path.startsWith("output."))
          this.#outputs.set(path, [
            ...(this.#outputs.get(path) ?? []),
            this.#schemaOf(this.readsOf(source).whole, this.#afterNode(node), false),
          ]);
  }

  *issues({ atlas }: Liveness): Generator<InputIssue, void> {
    const inBranches = new Set(atlas.places.flatMap(({ node, within }) => (within === null ? [] : [node])));
    for (const [index, node] of this.definition.nodes.entries()) {
      yield* this.#inputIssues(node, `/nodes/${index}`);
      yield* this.#stateIssues(node, `/nodes/${index}/outputMapping`, inBranches.has(node.ref));
    }
    yield* this.#mergeIssues();
    yield* this.#runIssues();
  }

  #known({ task, workflow }: WorkflowNode): KnownSchemas {
    const found =
      task !== undefined
        ? this.lookup("task", task)
        : workflow !== undefined
          ? this.lookup("workflow", workflow)
          : null;
    return found ?? { input: null, output: null };
  }

  #inputIssues(node: WorkflowNode, base: string): InputIssue[] {
    const { input } = this.#known(node);
    if (input === null) return [];
    const runs = `what node "${node.ref}" runs`;
    if (node.inputMapping !== undefined)
      return this.#mappingIssues(node.inputMapping, input, this.#beforeNode(), `${base}/inputMapping`, runs);
    const problem = mismatch(this.definition.inputSchema, input);
    if (problem === null) return [];
    const message = `SOUND-9: Node "${node.ref}" has no \`inputMapping\`, so it gets the run's input, which ${problem} by ${runs}. Map its members.`;
    return [{ path: base, message }];
  }

  /** Returns the members of a mapping that are missing, not known, or of another type than the schema wants. */
  #mappingIssues(
    mapping: Mapping,
    schema: JsonObject,
    variables: Variables,
    base: string,
    reader: string,
  ): InputIssue[] {
    const missing = requiredOf(schema)
      .filter((name) => !Object.hasOwn(mapping, name))
      .map((name) => ({
        path: base,
        message: `SOUND-9: The member "${name}" is missing, which ${reader} requires. Map it.`,
      }));
    const others = Object.entries(mapping).flatMap(([name, source]) => {
      const path = jsonPointer([name], base);
      const wanted = memberOf(schema, [name]);
      if (wanted.kind === "absent" && schema.additionalProperties === false)
        return [{ path, message: `SOUND-9: The schema of ${reader} has no member "${name}". Remove it.` }];
      if (wanted.kind !== "known") return [];
      const given = this.#schemaOf(this.readsOf(source).whole, variables);
      const problem = given === null ? null : mismatch(given, wanted.schema);
      if (problem === null) return [];
      return [{ path, message: `SOUND-9: \`${source}\` ${problem} for ${reader}. Map another value.` }];
    });
    return [...missing, ...others];
  }

  *#stateIssues(node: WorkflowNode, base: string, isInBranch: boolean): Generator<InputIssue, void> {
    for (const [path, source] of Object.entries(node.outputMapping ?? {})) {
      const at = jsonPointer([path], base);
      const given = this.#schemaOf(this.readsOf(source).whole, this.#afterNode(node));
      if (!isInBranch) yield* this.#writeIssue(path, given, `Node "${node.ref}"`, at);
      yield* this.#resultIssues(node, source, at);
    }
  }

  #resultIssues(node: WorkflowNode, source: string, path: string): InputIssue[] {
    const { output } = this.#known(node);
    if (output === null) return [];
    return this.readsOf(source)
      .paths.filter(
        ([variable, ...names]) => variable === "result" && memberOf(output, names).kind === "absent",
      )
      .map((names) => ({
        path,
        message: `SOUND-9: Node "${node.ref}" reads \`${names.join(".")}\`, which is not in the output of its target.`,
      }));
  }

  #mergeIssues(): InputIssue[] {
    return this.definition.transitions.flatMap(({ ref, synchronization }, index) => {
      const merge = synchronization?.merge;
      if (merge === undefined) return [];
      const made = { append: "array", collect: "array", merge_object: "object", keyed_by_branch: "object" };
      const given = merge.strategy === "last_wins" ? null : { type: made[merge.strategy] };
      const at = `/transitions/${index}/synchronization/merge/target`;
      return this.#writeIssue(merge.target, given, `The merge of transition "${ref}"`, at);
    });
  }

  #writeIssue(path: string, given: JsonObject | null, what: string, at: string): InputIssue[] {
    const [area, ...names] = namesOf(path);
    if (area !== "state") return [];
    const { contextSchema } = this.definition;
    if (contextSchema === undefined)
      return [
        {
          path: at,
          message: `SOUND-9: ${what} writes \`${path}\`, but the workflow has no \`contextSchema\`. Add one, or write \`output.…\`.`,
        },
      ];
    const member = memberOf(contextSchema, names);
    if (member.kind === "absent")
      return [
        {
          path: at,
          message: `SOUND-9: ${what} writes \`${path}\`, which \`contextSchema\` does not have. Add it there.`,
        },
      ];
    const problem = member.kind === "known" && given !== null ? mismatch(given, member.schema) : null;
    if (problem === null) return [];
    const message = `SOUND-9: ${what} writes \`${path}\` with a value that ${problem} by \`contextSchema\`. Change one of them.`;
    return [{ path: at, message }];
  }

  #runIssues(): InputIssue[] {
    const { outputSchema, outputMapping = {} } = this.definition;
    if (outputSchema === undefined) return [];
    return this.#mappingIssues(
      outputMapping,
      outputSchema,
      this.#beforeNode(),
      "/outputMapping",
      "the run's output",
    );
  }

  #beforeNode(): Variables {
    const { inputSchema, contextSchema = null } = this.definition;
    return { input: inputSchema, state: contextSchema };
  }

  #afterNode(node: WorkflowNode): Variables {
    return { ...this.#beforeNode(), result: this.#known(node).output };
  }

  /** Returns the schema of the value at a path; `null` if it is not certain. */
  #schemaOf(path: ReadPath | null, variables: Variables, followsOutput = true): JsonObject | null {
    const [variable = "", ...names] = path ?? [];
    if (variable === "output") return followsOutput ? this.#outputOf(names) : null;
    const schema = Object.hasOwn(variables, variable) ? variables[variable] : null;
    if (!isJsonObject(schema)) return null;
    const member = memberOf(schema, names);
    return member.kind === "known" ? member.schema : null;
  }

  /** Returns the schema of a part of `output` if a single node writes it. */
  #outputOf(names: readonly string[]): JsonObject | null {
    const written = this.#outputs.get(["output", ...names].join(".")) ?? [];
    const [only = null] = written;
    return written.length === 1 ? only : null;
  }
}
