/**
 * English statements about a user, in the user's words and in their stored form. Pure.
 *
 * LEARN-10  A stored statement keeps its subject: "My brother has a PhD" becomes "The user's brother has a PhD."
 * LEARN-11  Two statements contradict each other if they have the same subject and predicate. "I hate olives" replaces an older "I love olives".
 *           Statements with a predicate that allows several values, such as "have", never contradict each other.
 */

export interface Statement {
  /** The stored sentence. */
  content: string;
  type: string;
  significance: number;
  /** The name of its subject. Two statements with the same name contradict each other. Absent if several can hold together. */
  about?: string;
}

const OPINIONS: Readonly<Record<string, string>> = {
  ...{ like: "likes", love: "loves", enjoy: "enjoys", adore: "adores", prefer: "prefers" },
  ...{ hate: "hates", dislike: "dislikes", detest: "detests" },
};
const OPINION = Object.keys(OPINIONS).join("|");
const KEPT_OPINION = Object.values(OPINIONS).join("|");

/** Attributes that have one value at a time. */
const SINGLE =
  /^(?:(?:first|last|full|nick|middle)? ?name|birthday|birth date|age|(?:home |work |e-?mail |postal )?address|e-?mail|(?:phone|telephone|mobile)(?: number)?|job|profession|employer|company|boss|title|time ?zone|home ?town|nationality|(?:native |first |mother )?(?:language|tongue)|pronouns|wife|husband|spouse|partner|(?:\p{L}+ )?favou?rite (?:\p{L}+ ){0,2}\p{L}+)$/iu;

const NOUN = String.raw`(\p{L}[\p{L}'’-]*(?: \p{L}[\p{L}'’-]*){0,3}?)`;
const REST = "(.{1,240})";
const rule = (source: string) => new RegExp(`^${source}$`, "iu");

interface Rule {
  /** Matches the user's words. */
  spoken: RegExp;
  /** Matches the stored sentence. */
  kept: RegExp;
  /** Builds the statement from the captured texts. Both patterns capture the same texts. Returns `undefined` for other meanings. */
  make(captured: readonly string[]): Statement | undefined;
}

const fact = (content: string, significance: number, about?: string): Statement => ({
  ...{ content, type: "fact", significance },
  ...(about === undefined ? {} : { about }),
});

const RULES: readonly Rule[] = [
  {
    spoken: rule(`(?:my name is|call me) ${REST}`),
    kept: rule(`The user's name is ${REST}`),
    make: ([name = ""]) => (words(name) > 5 ? undefined : fact(`The user's name is ${name}.`, 0.9, "name")),
  },
  {
    spoken: rule(`i (?:(?:really|absolutely|just|truly|also|still|now) )*(${OPINION}) ${REST}`),
    kept: rule(`The user (${KEPT_OPINION}) ${REST}`),
    make([verb = "", object = ""]) {
      if (/^(?:it|this|that|them|these|those|him|her|you|to (?:ask|know|think|see if))\b/i.test(object))
        return undefined;
      const kept = OPINIONS[verb.toLowerCase()] ?? verb.toLowerCase();
      const content = `The user ${kept} ${object}.`;
      return { content, type: "preference", significance: 0.6, about: `opinion ${bare(object)}` };
    },
  },
  {
    spoken: rule(`i (?:now )?(?:live|reside|moved|have moved|relocated)(?: (?:in|to|at)) ${REST}`),
    kept: rule(`The user lives in ${REST}`),
    make: ([place = ""]) => fact(`The user lives in ${place}.`, 0.8, "home"),
  },
  {
    spoken: rule(
      `i(?:['’]m| am)? ?(?:now )?(?:work|working|(?:have )?started (?:working|to work)|began (?:working|to work)) (?:at|for) ${REST}`,
    ),
    kept: rule(`The user works at ${REST}`),
    make: ([place = ""]) => fact(`The user works at ${place}.`, 0.8, "employer"),
  },
  {
    spoken: rule(`i(?:['’]m| am)? ?(?:now )?(?:work|working) as ${REST}`),
    kept: rule(`The user works as ${REST}`),
    make: ([job = ""]) => fact(`The user works as ${job}.`, 0.8, "profession"),
  },
  {
    spoken: rule(String.raw`i(?:['’]m| am) (\d{1,3}) years? old`),
    kept: rule(String.raw`The user is (\d{1,3}) years old`),
    make: ([age = ""]) => fact(`The user is ${age} years old.`, 0.7, "age"),
  },
  {
    spoken: rule(
      String.raw`i(?:['’]m| am) ((?:an? (?!bit|little|lot|while)|allergic to |from |married to |(?:a )?(?:vegan|vegetarian|pescatarian|left-handed|right-handed|colou?r[- ]blind|diabetic|single|married|divorced|retired)\b).{0,200})`,
    ),
    kept: rule(`The user is (.{1,240})`),
    make: ([what = ""]) => fact(`The user is ${what}.`, 0.7, /^from /i.test(what) ? "origin" : undefined),
  },
  {
    spoken: rule(`i (have|own|speak|play|study|drive) ${REST}`),
    kept: rule(`The user (has|owns|speaks|plays|studies|drives) ${REST}`),
    make([verb = "", object = ""]) {
      if (
        /^(?:to|a question|questions|an? (?:idea|issue|problem|feeling)|no|been|had|it|this|that)\b/i.test(
          object,
        )
      )
        return undefined;
      const kept: Record<string, string> = { have: "has", study: "studies" };
      const lower = verb.toLowerCase();
      return fact(`The user ${kept[lower] ?? (lower.endsWith("s") ? lower : `${lower}s`)} ${object}.`, 0.6);
    },
  },
  {
    spoken: rule(
      `my ${NOUN} (is|are|was|has|have|likes|loves|hates|prefers|lives in|works at|works for|works as) ${REST}`,
    ),
    kept: rule(
      `The user's ${NOUN} (is|are|was|has|have|likes|loves|hates|prefers|lives in|works at|works for|works as) ${REST}`,
    ),
    make([noun = "", verb = "", value = ""]) {
      if (
        /^(?:question|problem|point|guess|bad|goodness|god|idea|suggestion|issue|understanding)s?$/i.test(
          noun,
        )
      )
        return undefined;
      const lower = verb.toLowerCase();
      return fact(`The user's ${noun} ${lower} ${value}.`, 0.7, aboutNoun(noun, lower, value));
    },
  },
];

function aboutNoun(noun: string, verb: string, value: string): string | undefined {
  const name = noun.toLowerCase();
  if (/^(?:likes|loves|hates|prefers)$/.test(verb)) return `${name} opinion ${bare(value)}`;
  if (verb === "lives in") return `${name} home`;
  if (verb.startsWith("works")) return `${name} ${verb === "works as" ? "profession" : "employer"}`;
  return verb === "is" && SINGLE.test(noun)
    ? name === "name" || name === "full name"
      ? "name"
      : name
    : undefined;
}

function words(text: string): number {
  return text.split(/\s+/).length;
}

function bare(object: string): string {
  return object.toLowerCase().replace(/^(?:the|an?|my|eating|drinking) /, "");
}

/** Parses a clause in the user's words, without its full stop. Returns `undefined` if no rule matches. */
export function statementOf(clause: string): Statement | undefined {
  return firstOf(clause, ({ spoken }) => spoken);
}

/** Parses a stored sentence. Returns `undefined` if no rule matches. */
export function keptStatement(content: string): Statement | undefined {
  return firstOf(content.replace(/[.!\s]+$/, ""), ({ kept }) => kept);
}

function firstOf(text: string, form: (rule: Rule) => RegExp): Statement | undefined {
  for (const each of RULES) {
    const found = form(each).exec(text);
    const made = found && each.make(found.slice(1).map((part) => part.trim()));
    if (made) return made;
  }
  return undefined;
}
