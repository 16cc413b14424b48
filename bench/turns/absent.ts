/** A stub for an optional shell that one of the systems imports. No measured turn uses it. */
export class Bash {
  constructor() {
    throw new Error("The benchmark bundles no shell.");
  }
}

export function defineCommand(): never {
  throw new Error("The benchmark bundles no shell.");
}
