/** The changes of commands beside other changes, over all histories of a few files. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { pauseAfter } from "../../src/agents/workspace/background.ts";
import { applyChanges, changesBetween } from "../../src/agents/workspace/core/command-changes.ts";
import { WorkingTree } from "../../src/agents/workspace/core/working-tree.ts";
import { oidOf } from "../../src/git/objects.ts";

const PATHS = ["a", "b", "c/d"];
const encode = (text: string) => new TextEncoder().encode(text);
/** The texts of the files; `null` for no file. */
const texts = fc.tuple(...PATHS.map(() => fc.constantFrom(null, "one", "two")));
type Texts = readonly (string | null)[];

/** Returns a tree over a commit. */
async function treeOf(commit: Texts, texts: Texts): Promise<WorkingTree> {
  const contents = new Map(
    commit.map((text) => [oidOf({ type: "blob", content: encode(text ?? "") }), text]),
  );
  const base = new Map(
    PATHS.flatMap((path, index) => {
      const text = commit[index];
      return text == null
        ? []
        : [[path, { oid: oidOf({ type: "blob", content: encode(text) }), mode: "100644" }]];
    }) as [string, { oid: string; mode: string }][],
  );
  return set(new WorkingTree(base, async (oid) => encode(contents.get(oid) ?? "")), texts);
}

/** Gives the files of a tree their texts. */
async function set(tree: WorkingTree, texts: Texts): Promise<WorkingTree> {
  for (const [index, path] of PATHS.entries()) {
    const text = texts[index];
    if (text == null) tree.drop(tree.entry(path) === undefined ? [] : [path]);
    else await tree.write(path, encode(text));
  }
  return tree;
}

const textsOf = (tree: WorkingTree) =>
  Promise.all(
    PATHS.map(async (path) =>
      tree.entry(path) === undefined ? null : new TextDecoder().decode(await tree.read(path)),
    ),
  );

test("BACKGROUND-3 changes apply all or not at all, and only over files that are as the command saw or left them", () =>
  fc.assert(
    fc.asyncProperty(texts, texts, texts, texts, async (commit, before, after, now) => {
      const tree = await treeOf(commit, now);
      const seen = await treeOf(commit, before);
      const left = await set(seen.fork(), after);
      const conflicts = await applyChanges(tree, await changesBetween(seen, left));
      const clashing = PATHS.filter(
        (_, index) =>
          before[index] !== after[index] && now[index] !== before[index] && now[index] !== after[index],
      );
      expect(conflicts).toEqual(clashing);
      const merged = PATHS.map((_, index) => (before[index] === after[index] ? now[index] : after[index]));
      expect(await textsOf(tree)).toEqual(clashing.length > 0 ? now : merged);
    }),
  ));

test("BACKGROUND-6 the pauses between two looks grow to ten seconds", () =>
  fc.assert(
    fc.property(fc.nat(86_400_000), fc.nat(86_400_000), (elapsed, more) => {
      const pause = pauseAfter(elapsed);
      expect(pause).toBeGreaterThanOrEqual(1_000);
      expect(pause).toBeLessThanOrEqual(10_000);
      expect(pauseAfter(elapsed + more)).toBeGreaterThanOrEqual(pause);
    }),
  ));
