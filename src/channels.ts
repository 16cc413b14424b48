/** Entry `dramatis/channels`: adapters for Slack and mail, and the interface for others. */
export { type MailOptions, mail } from "./agents/channel/adapters/mail.ts";
export { type SlackOptions, slack } from "./agents/channel/adapters/slack.ts";
export type {
  ChannelAdapter,
  ChannelDelivery,
  ChannelEvent,
  ChannelMail,
  ChannelText,
  ChannelUser,
} from "./protocol/channels.ts";
