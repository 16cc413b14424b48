/** The limits of expressions. */

/** Length of the expressions of one definition together, in UTF-16 units. */
export const MAX_EXPRESSION_LENGTH = 10_000;
/** Parts of one expression: names, literals, operators and calls. */
export const MAX_EXPRESSION_PARTS = 1_000;
/** Nesting of parentheses, lists and calls in an expression. */
export const MAX_EXPRESSION_DEPTH = 50;
export const MAX_MAPPED_KEYS = 64;

/** Steps of compiling each character of an expression. They count whenever it is used, also while it is in memory. */
export const STEPS_OF_EXPRESSION_CHARACTER = 8;
/** UTF-16 units of a text that a function reads or makes in one step. */
export const UNITS_OF_STEP = 16;
