/** A button that lengthens a list. */
interface LoadMoreProps {
  onClick: () => void;
  text?: string;
}

export function LoadMore({ onClick, text = "Load more" }: LoadMoreProps) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="px-1 py-1.5 text-sm text-accent hover:underline pointer-coarse:py-2.5"
    >
      {text}
    </button>
  );
}
