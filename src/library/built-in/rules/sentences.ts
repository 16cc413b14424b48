/**
 * Finds the sentences of a message that are statements. Pure.
 *
 * LEARN-12  Questions, negations, suppositions and quotes are not stored. The name of the month May does not count as a supposition.
 */

/** Maximum number of sentences that are read from a message, and characters of each sentence. */
const MAX_SENTENCES = 200;
const MAX_LENGTH = 400;

const QUOTE = /["“”«»„]|(?:^|\s)['‘][^'’]*['’](?=\s|[.,;:!?]|$)/u;
const NEGATION =
  /\b(?:not|never|no longer|no more|nobody|nothing|neither|nor|hardly|without|cannot|ain['’]?t)\b|n['’]t\b|\b(?:dont|doesnt|didnt|isnt|arent|wont|cant|wasnt)\b/i;
const SUPPOSITION =
  /\b(?:if|unless|suppose|supposing|imagine|assume|assuming|pretend|hypothetically|would|could|should|might|may|maybe|perhaps|possibly|probably|i think|i guess|i wish|i hope|as though|let['’]?s say|for example|e\.g|used to|joking|kidding)\b/i;
/** The month or a name: "May" within a sentence, or lowercase "may" after a word of time. */
const NO_MODAL =
  /(?<=\S\s+)May\b|\b[Mm]ay(?= \d)|(?<=\b(?:in|of|since|by|until|till|last|next|early|mid|late|\d(?:st|nd|rd|th)?)[ -])may\b/gu;

/** Filler words before a statement. */
const OPENING =
  /^(?:(?:and|but|so|well|also|oh|hey|hi|hello|ok|okay|yes|yeah|actually|btw|by the way|fyi|please|note that|you know|in fact|to be clear|honestly|now|sorry|thanks|thank you)\b[,:]?\s+)+/i;

/** Returns the clauses of a message that may be statements, without their full stops. */
export function clausesOf(message: string): string[] {
  return sentencesOf(message).flatMap((sentence) => {
    if (sentence.endsWith("?") || QUOTE.test(sentence) || isSupposed(sentence)) return [];
    return sentence
      .replace(/[.!\s]+$/, "")
      .split(/;\s*|,?\s+(?:and|but|while|though)\s+(?=(?:i|my|we)\b)|,\s+(?=(?:i|my)\s)/i)
      .map((clause) => clause.replace(OPENING, "").trim())
      .filter((clause) => clause !== "" && !NEGATION.test(clause));
  });
}

function isSupposed(sentence: string): boolean {
  return SUPPOSITION.test(sentence.replace(NO_MODAL, ""));
}

export function sentencesOf(message: string): string[] {
  return message
    .slice(0, MAX_SENTENCES * MAX_LENGTH)
    .split(/\n+|(?<=[.!?])\s+/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "" && sentence.length <= MAX_LENGTH)
    .slice(0, MAX_SENTENCES);
}

/** Returns a sentence without filler words at its start. */
export function withoutOpening(sentence: string): string {
  return sentence.replace(OPENING, "");
}
