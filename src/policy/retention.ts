/** How long conversations without activity stay. */

/** A conversation, as a retention policy sees it. */
export interface RetainedConversation {
  tenant: string;
  projectId: string;
  /** `false` for a conversation that lists leave out, such as those of `POST /v1/chat/completions`. */
  isListed: boolean;
}

/** Returns the days without activity after which a conversation is deleted; `undefined` to keep it. */
export type RetentionPolicy = (conversation: RetainedConversation) => number | undefined;

/** Days after which a conversation that lists leave out is deleted, unless the application has a policy. */
const UNLISTED_DAYS = 30;
export const DEFAULT_RETENTION: RetentionPolicy = ({ isListed }) => (isListed ? undefined : UNLISTED_DAYS);
