/** Stands in for an optional shell that one of the systems imports for scripts of skills; no turn here runs one. */
export class Bash {
  constructor() {
    throw new Error("The benchmark bundles no shell.");
  }
}

export function defineCommand(): never {
  throw new Error("The benchmark bundles no shell.");
}
