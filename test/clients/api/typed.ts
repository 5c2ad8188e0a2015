// Uses the types that openapi-typescript makes of /openapi.json. That it compiles is half of the test.
import createClient from "openapi-fetch";
import type { paths } from "./openapi.js";

declare const process: { argv: string[] };
const [baseUrl, token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

async function main(): Promise<void> {
  const events = await client.GET("/v1/events", {
    params: { query: { pageSize: 2, allOrganizations: true, types: ["user.*", "org.*"], order: "EVENT_ORDER_OLDEST_FIRST", from: "2020-01-01T00:00:00Z" } },
  });
  if (events.error) throw new Error(events.error.message);
  // @ts-expect-error pageSize is a number
  const wrong = await client.GET("/v1/events", { params: { query: { pageSize: "2" } } });
  const refused = await client.PUT("/v1/users/me/profile", { body: { firstName: "", lastName: "L", displayName: "D" } });
  console.log(JSON.stringify({
    events: events.data.events?.length, wrong: wrong.response.status, status: refused.response.status, code: refused.error?.code,
  }));
}

void main();
