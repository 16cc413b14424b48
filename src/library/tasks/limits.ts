/** The limits of tasks of steps. */

/** Steps of one task. */
export const MAX_STEPS = 64;
/** Bytes of the body of a response to `http.request`. */
export const MAX_HTTP_RESPONSE_BYTES = 512 * 1024;
/** Redirects that a request follows. */
export const MAX_HTTP_REDIRECTS = 5;
/** Attempts of a step's action, the first included. */
export const MAX_STEP_ATTEMPTS = 10;
/** Hosts that an action names. */
export const MAX_ACTION_HOSTS = 100;
/** `state` and `output` of a task together, as JSON in UTF-16 units. */
export const MAX_TASK_CONTEXT_LENGTH = 1024 * 1024;
/** Failures of steps that a task goes on after, as `state._errors` keeps them. */
export const MAX_NOTED_ERRORS = 100;
