/** What went wrong, in words for whoever ran a script: shown without a stack. */
export class Failure extends Error {}
