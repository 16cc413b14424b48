/** What the model wrote beside its tool calls: part of the work, not of the conversation. */
export function Thought({ text }: { text: string }) {
  return (
    <p className="border-l-2 border-line pl-3 text-sm wrap-anywhere whitespace-pre-wrap text-muted">{text}</p>
  );
}
