/** How conversations without a title get a title. */

/** A conversation, as a title policy sees it. */
export interface TitledConversation {
  tenant: string;
  projectId: string;
}

/** `message`: the title is the beginning of the first message. `none`: only people give titles. */
export type TitleSource = "message" | "none";

/** Returns how a conversation gets its title. */
export type TitlePolicy = (conversation: TitledConversation) => TitleSource;

export const DEFAULT_TITLES: TitlePolicy = () => "message";
