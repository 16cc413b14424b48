/**
 * Markdown of a model. It is untrusted: HTML is shown as text, links open without a referrer, and images become links,
 * because loading one would reveal to its server that the page is open.
 */
import { isValidElement, memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CodeBlock, IsGrowing } from "./code-block.tsx";

const plugins = [remarkGfm];

const components: Components = {
  a: ({ href, children }) => <ExternalLink href={href}>{children}</ExternalLink>,
  img: ({ src, alt }) => (
    <ExternalLink href={typeof src === "string" ? src : undefined}>{alt || "Image"}</ExternalLink>
  ),
  pre: ({ children }) => <Preformatted>{children}</Preformatted>,
};

/** A block of code is a `pre` with one `code`, whose class names the language. */
function Preformatted({ children }: { children?: ReactNode }) {
  const code = isValidElement<{ className?: string; children?: ReactNode }>(children) ? children.props : {};
  const text = typeof code.children === "string" ? code.children : "";
  const [, language = ""] = /language-(\S+)/.exec(code.className ?? "") ?? [];
  return text === "" ? (
    <pre>{children}</pre>
  ) : (
    <CodeBlock code={text.replace(/\n$/, "")} language={language} />
  );
}

/** The Markdown renderer has removed unsafe addresses. Their text stays. */
function ExternalLink({ href, children }: { href: string | undefined; children: ReactNode }) {
  if (href === undefined || href === "") return children;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

export const Markdown = memo(function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  return (
    <div className="markdown">
      <IsGrowing value={isGrowing}>
        <ReactMarkdown remarkPlugins={plugins} components={components}>
          {text}
        </ReactMarkdown>
      </IsGrowing>
    </div>
  );
});
