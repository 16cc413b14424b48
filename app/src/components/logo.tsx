/** The logo: two masks. */
export function Logo() {
  return (
    <svg viewBox="0 0 32 32" className="size-6" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <path d="M7 8h11v6.5a5.5 5.5 0 0 1-11 0z" className="fill-on-accent" />
      <path
        d="M20.5 14H25v6.5a5.5 5.5 0 0 1-11 0v-.1c3.700-.5 6.5-2.900 6.5-6.400z"
        className="fill-on-accent"
        opacity=".6"
      />
    </svg>
  );
}
