/** The limits of templates. */

/** UTF-16 units of a template. */
export const MAX_TEMPLATE_LENGTH = 50_000;
/** UTF-16 units of a template's tags and outputs together, with their delimiters. */
export const MAX_TEMPLATE_CODE = 10_000;
/** Tags and outputs of a template. */
export const MAX_TEMPLATE_TAGS = 1_000;
/** Nesting of blocks, and of brackets in an expression. */
export const MAX_TEMPLATE_DEPTH = 32;
/** Most UTF-16 units of a rendered text, and of each text that a filter makes. */
export const MAX_RENDERED_LENGTH = 1_000_000;
/** Items of a range, such as `(1..10)`. */
export const MAX_RANGE_ITEMS = 100_000;

/** Steps per character of a tag or output, and per tag. Finding them takes a step per character. */
export const [STEPS_OF_CODE_CHARACTER, STEPS_OF_TAG] = [10, 40];
