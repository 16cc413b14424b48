/** `library/id`, `library/id@version`, or the same as an object. No version means the latest when it is resolved. */
export type DefinitionReference = string | { library: string; id: string; version?: number };
