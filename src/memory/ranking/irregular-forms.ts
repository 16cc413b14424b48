/**
 * Irregular forms of English words. Stemming does not join "buy" and "bought". Pure.
 *
 * FORMS-1  A query for a form of an irregular word finds all its forms. The forms are of verbs, of nouns with another plural, and of adjectives.
 */
import { stemmer } from "stemmer";

/** A word a line, with its forms. */
const GROUPS = `arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun|bend bent|bind bound|bite bit bitten|bleed bled
blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came
creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt
fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get got gotten|give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|know knew known|lay laid|lead led
lean leant|leap leapt|learn learnt|leave left|lend lent|lose lost|make made|mean meant|meet met|overcome overcame|pay paid|ride rode ridden
ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot
show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|speed sped|spell spelt|spend spent
spin spun|stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn
weave wove woven|weep wept|win won|withdraw withdrew withdrawn|write wrote written|child children|foot feet|goose geese|man men|mouse mice
tooth teeth|woman women|person people|life lives|wife wives|knife knives|shelf shelves|half halves|good better best|bad worse worst
far further furthest`;

/** The forms of each word, the base form first. No stem is in two of them. */
export const IRREGULAR_WORDS: readonly (readonly string[])[] = GROUPS.split(/[|\n]/).map((group) =>
  group.split(" "),
);

const FORMS = new Map(
  IRREGULAR_WORDS.flatMap((forms) => forms.map((form) => [stemmer(form), forms] as const)),
);

/** Returns the forms of an irregular word, the base form first; `undefined` for another word. */
export function irregularForms(stem: string): readonly string[] | undefined {
  return FORMS.get(stem);
}
