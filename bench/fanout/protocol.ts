/** Storage operations of a run of Dramatis, with its creation. */
export interface RunCost {
  statements: number;
  rows: number;
  /** Size of the database at the end. */
  bytes: number;
}
