// A single-page application that signs people in with Signet: the authorization code flow with PKCE, without a library.
const { issuer, clientId } = await (await fetch('/settings.json')).json();
const signet = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const redirect = `${location.origin}/`;

const encode = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const random = () => encode(crypto.getRandomValues(new Uint8Array(32)));

// begin sends the browser to Signet. State and verifier stay in this tab, so that only it can use the answer.
async function begin() {
  const [state, verifier] = [random(), random()];
  sessionStorage.setItem('state', state);
  sessionStorage.setItem('verifier', verifier);
  const challenge = encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
  location.assign(`${signet.authorization_endpoint}?${new URLSearchParams({
    response_type: 'code', client_id: clientId, redirect_uri: redirect, scope: 'openid profile email',
    state, code_challenge: challenge, code_challenge_method: 'S256',
  })}`);
}

// finish exchanges the code for an access token, which stays in memory, and asks who the person is.
async function finish(answer) {
  const [state, verifier] = [sessionStorage.getItem('state'), sessionStorage.getItem('verifier')];
  sessionStorage.clear();
  history.replaceState(null, '', '/'); // the code is of no use any more
  if (!state || answer.get('state') !== state) throw new Error('This answer belongs to another tab. Sign in again.');
  if (answer.has('error')) throw new Error(`Signet answered ${answer.get('error')}: ${answer.get('error_description')}`);
  const tokens = await (await fetch(signet.token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code', client_id: clientId, redirect_uri: redirect, code: answer.get('code'), code_verifier: verifier,
    }),
  })).json();
  if (tokens.error) throw new Error(`Signet answered ${tokens.error}: ${tokens.error_description}`);
  const person = await fetch(signet.userinfo_endpoint, { headers: { authorization: `Bearer ${tokens.access_token}` } });
  return person.json();
}

const [hello, button] = [document.getElementById('hello'), document.getElementById('sign-in')];
button.addEventListener('click', begin);
const answer = new URLSearchParams(location.search);
try {
  if (answer.has('state')) {
    hello.textContent = `Hello, ${(await finish(answer)).name}`;
    hello.className = 'signed-in';
  } else button.hidden = false;
} catch (e) {
  hello.textContent = e.message;
  button.hidden = false;
}
