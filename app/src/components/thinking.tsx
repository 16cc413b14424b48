/** Shown while a turn is active and has no other content. */
export function Thinking({ agentName }: { agentName: string }) {
  return (
    <p className="flex items-center gap-2 text-sm text-muted">
      <span className="flex gap-1" aria-hidden="true">
        <span className="dot size-1.5 rounded-full bg-muted" />
        <span className="dot size-1.5 rounded-full bg-muted [animation-delay:0.15s]" />
        <span className="dot size-1.5 rounded-full bg-muted [animation-delay:0.3s]" />
      </span>
      {agentName} is thinking…
    </p>
  );
}
