/** The channel that a conversation came from, such as Slack. */
import { wordsOf } from "../format.ts";

export function ChannelBadge({ channel }: { channel: string }) {
  return (
    <span
      data-testid="channel"
      className="inline-block shrink-0 rounded-full border border-line bg-surface px-1.5 text-[0.6875rem]/4 font-medium text-muted"
    >
      <span className="sr-only">From </span>
      {wordsOf(channel)}
    </span>
  );
}
