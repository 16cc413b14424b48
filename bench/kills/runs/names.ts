/** The workflow of the scenario `runs`, in the library `kills`. */
export const ERRANDS = "errands";
