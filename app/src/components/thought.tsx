/** Text of the model beside its tool calls. It is not part of the transcript. */
export function Thought({ text }: { text: string }) {
  return (
    <p className="border-l-2 border-line pl-3 text-sm wrap-anywhere whitespace-pre-wrap text-muted">{text}</p>
  );
}
