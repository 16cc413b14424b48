/** An error of a script that is printed without a stack. */
export class Failure extends Error {}
