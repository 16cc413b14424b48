/** The limits of tasks of steps. */

/** Steps of one task. */
export const MAX_STEPS = 64;
/** Bytes of the body of a response to `http.request`. */
export const MAX_HTTP_RESPONSE_BYTES = 512 * 1024;
/** Redirects that a request follows. */
export const MAX_HTTP_REDIRECTS = 5;
/** Attempts of a step's action, or of a whole task, including the first. */
export const MAX_STEP_ATTEMPTS = 10;
export const MAX_ACTION_HOSTS = 100;
/** UTF-16 units of the `state` and `output` of a task, as JSON. */
export const MAX_TASK_CONTEXT_LENGTH = 4 * 1024 * 1024;
/** Failures in `state._errors`. */
export const MAX_NOTED_ERRORS = 100;
/** UTF-16 units of a message in `state._errors`. */
export const MAX_NOTED_MESSAGE = 500;
/** Bytes of all pinned tasks of one version chain, as JSON. */
export const MAX_PINNED_BYTES = 1024 * 1024;
/** The longest answer of an `llm` action, in tokens. */
export const MAX_ANSWER_TOKENS = 200_000;
/** Maximum texts of an `llm.embed` action. */
export const MAX_EMBEDDED_TEXTS = 512;
/** Maximum recorded events of a task. The same limit applies to measurements. */
export const MAX_TASK_EVENTS = 32;
/** The longest pause of `mock.return`, in milliseconds. */
export const MAX_MOCK_DELAY_MS = 60_000;
/** The longest wait for the answer of a person, in milliseconds: 30 days. */
export const MAX_GATE_MS = 30 * 86_400_000;
export const MAX_PROMPT_EXAMPLES = 16;
/** Maximum UTF-16 units of all recorded payloads and attributes of a task, as JSON. */
export const MAX_RECORDED_LENGTH = 16 * 1024;
/** Maximum UTF-16 units of all recorded error messages of a task's failed steps. */
export const MAX_RECORDED_MESSAGES = 8 * 1024;
/** Maximum of `maxInputTokens` of an `llm` action. */
export const MAX_PROMPT_TOKENS = 1_000_000;
