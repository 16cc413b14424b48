/** Measures how well systems find the turns that answer questions. All figures in percent. */
import { readFileSync } from "node:fs";
import { StaticEmbedder } from "../../src/memory/embedders/static-embedder.ts";
import { WordTable } from "../../src/memory/embedders/word-table.ts";
import { isFunctionWord } from "../../src/memory/ranking/function-words.ts";
import { windowsOf } from "../../src/memory/ranking/times.ts";
import { stemOf, wordsOf } from "../../src/memory/ranking/words.ts";
import { MIN_RELEVANCE } from "../../src/protocol/memory.ts";
import { SHAPES, type Shape } from "./corpora.ts";
import { type Question, readLocomo } from "./locomo.ts";
import { dramatis, fts5, type Search, type System } from "./systems.ts";

export interface Figure {
  case: string;
  system: string;
  metric: string;
  percent: number;
}

/** Sums of a metric over questions. */
class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    this.#sum += value;
    this.#count += 1;
  }

  get percent(): number {
    return this.#count === 0 ? Number.NaN : (100 * this.#sum) / this.#count;
  }
}

/** Metrics by case, system and name. */
class Figures {
  readonly #means = new Map<string, { of: Omit<Figure, "percent">; mean: Mean }>();

  add(of: Omit<Figure, "percent">, value: number): void {
    const key = JSON.stringify(of);
    const known = this.#means.get(key) ?? { of, mean: new Mean() };
    known.mean.add(value);
    this.#means.set(key, known);
  }

  all(): Figure[] {
    return [...this.#means.values()].map(({ of, mean }) => ({ ...of, percent: mean.percent }));
  }
}

/** Measures all shapes and systems. `table` is the path of the word vectors. */
export async function measure(table: string): Promise<Figure[]> {
  const words = WordTable.read(new Uint8Array(readFileSync(table)).buffer);
  if (words === null) throw new Error(`${table} is not a table of word vectors.`);
  const systems: Record<string, System> = {
    dramatis: dramatis(new StaticEmbedder(words)),
    "dramatis without vectors": dramatis(null),
    fts5,
  };
  const figures = new Figures();
  const conversations = readLocomo();
  for (const [name, shape] of Object.entries(SHAPES)) {
    const shapes = conversations.map(shape);
    for (const [system, store] of Object.entries(systems)) {
      const searches = await Promise.all(shapes.map(({ items }) => store(items)));
      for (const [index, of] of shapes.entries()) {
        const search = searches[index];
        const other = shapes[(index + 1) % shapes.length];
        if (search === undefined || other === undefined) continue;
        const cases = name === "locomo" && index >= 5 ? [name, "locomo-6-10"] : [name];
        await measureShape({ figures, cases, system, shape: of, search, foreign: other.questions });
      }
    }
  }
  return figures.all();
}

interface Measured {
  figures: Figures;
  cases: string[];
  system: string;
  shape: Shape;
  search: Search;
  /** Questions about another conversation. */
  foreign: Question[];
}

async function measureShape({ figures, cases, system, shape, search, foreign }: Measured): Promise<void> {
  const [main = ""] = cases;
  const add = (metric: string, value: number) => {
    for (const name of cases) figures.add({ case: name, system, metric }, value);
  };
  const speakers = new Set(shape.items.flatMap(({ input }) => wordsOf(input.speaker ?? "")));
  for (const question of shape.questions) {
    const results = await search(question.text, shape.now);
    const found = results.map(({ index }) => shape.items[index]?.turns ?? []);
    const recall = recallAt(found, question, 10);
    add("R@5", recallAt(found, question, 5));
    add("R@10", recall);
    add("nDCG@10", gain(found, question));
    if (main !== "locomo") continue;
    if (sharesNoStem(question, shape, speakers)) add("R@10, no stem in common", recall);
    if (windowsOf(question.text, Date.parse(shape.now)).length > 0) add("R@10, a time is named", recall);
    if (system !== "dramatis") continue;
    for (const [index, turns] of found.entries()) {
      if (!turns.some((id) => question.evidence.includes(id))) continue;
      add("evidence above the floor", Number((results[index]?.relevance ?? 0) >= MIN_RELEVANCE));
    }
  }
  if (system !== "dramatis" || main !== "locomo") return;
  for (const { text } of foreign) {
    const results = await search(text, shape.now);
    add(
      "foreign questions that recall nothing",
      Number(results.every(({ relevance }) => relevance < MIN_RELEVANCE)),
    );
  }
}

function recallAt(found: readonly string[][], { evidence }: Question, limit: number): number {
  const ids = new Set(found.slice(0, limit).flat());
  return evidence.filter((id) => ids.has(id)).length / evidence.length;
}

/** Returns the normalized discounted cumulative gain. A result counts once. */
function gain(found: readonly string[][], { evidence }: Question): number {
  const discount = (position: number) => 1 / Math.log2(position + 2);
  let sum = 0;
  const left = new Set(evidence);
  for (const [position, turns] of found.entries()) {
    const hits = turns.filter((id) => left.delete(id));
    if (hits.length > 0) sum += discount(position);
  }
  const ideal = evidence.slice(0, 10).reduce((total, _, position) => total + discount(position), 0);
  return sum / ideal;
}

function sharesNoStem(
  { text, evidence }: Question,
  { items }: Shape,
  speakers: ReadonlySet<string>,
): boolean {
  const asked = new Set(stems(text, speakers));
  return items
    .filter(({ turns }) => turns.some((id) => evidence.includes(id)))
    .every(({ input }) => !stems(input.content, speakers).some((stem) => asked.has(stem)));
}

function stems(text: string, ignored: ReadonlySet<string>): string[] {
  return wordsOf(text)
    .filter((word) => !isFunctionWord(word) && !ignored.has(word))
    .map(stemOf);
}
