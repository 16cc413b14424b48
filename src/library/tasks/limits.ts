/** The limits of tasks of steps. */

/** Steps of one task. */
export const MAX_STEPS = 64;
/** `state` and `output` of a task together, as JSON in UTF-16 units. */
export const MAX_TASK_CONTEXT_LENGTH = 1024 * 1024;
/** Failures of steps that a task goes on after, as `state._errors` keeps them. */
export const MAX_NOTED_ERRORS = 100;
