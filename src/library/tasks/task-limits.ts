/** The limits of tasks of steps. */

/** Steps of one task. */
export const MAX_STEPS = 64;
/** Bytes of the body of a response to `http.request`. */
export const MAX_HTTP_RESPONSE_BYTES = 512 * 1024;
/** Redirects that a request follows. */
export const MAX_HTTP_REDIRECTS = 5;
/** Attempts of a step's action, or of a whole task, the first included. */
export const MAX_STEP_ATTEMPTS = 10;
/** Hosts that an action names. */
export const MAX_ACTION_HOSTS = 100;
/** Length of all that the steps of a task write to `state` and `output`, as JSON in UTF-16 units. */
export const MAX_TASK_CONTEXT_LENGTH = 4 * 1024 * 1024;
/** Failures of steps that a task goes on after, as `state._errors` keeps them. */
export const MAX_NOTED_ERRORS = 100;
/** UTF-16 units of the message of a failure that is noted. */
export const MAX_NOTED_MESSAGE = 500;
/** Bytes of the pinned tasks of one version chain together, as JSON. */
export const MAX_PINNED_BYTES = 1024 * 1024;
/** The longest answer of an `llm` action, in tokens. */
export const MAX_ANSWER_TOKENS = 200_000;
/** Texts that one `llm.embed` action turns into vectors. */
export const MAX_EMBEDDED_TEXTS = 512;
/** Maximum number of events, and of measurements, that one task records. */
export const MAX_TASK_EVENTS = 32;
/** The longest pause of `mock.return`, in milliseconds. */
export const MAX_MOCK_DELAY_MS = 60_000;
/** The longest wait for the answer of a person, in milliseconds: 30 days. */
export const MAX_GATE_MS = 30 * 86_400_000;
/** Examples of a prompt. */
export const MAX_PROMPT_EXAMPLES = 16;
/** UTF-16 units of the payloads and attributes that one task records, as JSON. */
export const MAX_RECORDED_LENGTH = 16 * 1024;
/** UTF-16 units of the messages of failed steps that one task keeps. */
export const MAX_RECORDED_MESSAGES = 8 * 1024;
/** The longest input of an `llm` action that its author may name, in tokens. */
export const MAX_PROMPT_TOKENS = 1_000_000;
