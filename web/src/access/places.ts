/** The login page, from which one comes back to a page of the app. */
export function loginAt(page: string): string {
  return page === "/" ? "/login" : `/login?${new URLSearchParams({ next: page })}`;
}

/** The page that a login leads to: one of the app, whatever the address says. */
export function nextOf(search: URLSearchParams): string {
  const next = search.get("next") ?? "/";
  return /^\/(?![/\\])/.test(next) ? next : "/";
}

const RETURN = "penstock.return";

/** Remembers a page while somebody logs in at another server, which does not know it. */
export function keepReturn(page: string): void {
  sessionStorage.setItem(RETURN, page);
}

/** The page that was remembered, once; null if there is none. */
export function takeReturn(): string | null {
  const page = sessionStorage.getItem(RETURN);
  sessionStorage.removeItem(RETURN);
  return page;
}
