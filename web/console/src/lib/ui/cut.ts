// Texts that are cut to fit show the whole text to whoever points at them.

/** Gives every cut text below an element its whole text as title, now and when something changes. */
export function titles(selector: string) {
  return (node: HTMLElement) => {
    const look = () => {
      for (const one of node.querySelectorAll<HTMLElement>(selector)) {
        if (one.scrollWidth > one.clientWidth) one.title = (one.closest('.ends') ?? one).textContent.trim();
        else one.removeAttribute('title');
      }
    };
    const resized = new ResizeObserver(look);
    resized.observe(blockOf(node));
    const changed = new MutationObserver(look);
    changed.observe(node, { childList: true, characterData: true, subtree: true });
    return () => {
      resized.disconnect();
      changed.disconnect();
    };
  };
}

/** What an element is as wide as: what is inline has no size that could be observed. */
function blockOf(node: HTMLElement): HTMLElement {
  let block = node;
  while (block.parentElement && getComputedStyle(block).display === 'inline') block = block.parentElement;
  return block;
}
