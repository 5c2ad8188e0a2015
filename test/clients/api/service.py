# Service users by the JWT bearer grant, with libraries as they are: Authlib and oauthlib. Neither sends a jti.
#
#   service.py URL USER KEY_ID KEY_FILE
import sys

import requests
from authlib.integrations.requests_client import AssertionSession
from oauthlib.oauth2 import ServiceApplicationClient

url, user, key_id, key_file = sys.argv[1:]
with open(key_file) as file:
    key = file.read()
token_url, info_url = url + "/oauth/token", url + "/oauth/userinfo"


def check(library, answer):
    if answer.status_code != 200 or answer.json()["sub"] != user:
        sys.exit(f"{library}: {answer.status_code} {answer.text}")
    print(library, "works")


for _ in range(2):  # the second one in the same second carries the same assertion
    session = AssertionSession(token_endpoint=token_url, grant_type=AssertionSession.JWT_BEARER_GRANT_TYPE, issuer=user, subject=user, audience=token_url,
                               header={"alg": "RS256", "kid": key_id}, key=key, scope="openid")
    check("Authlib", session.get(info_url))

for _ in range(2):
    client = ServiceApplicationClient(user, private_key=key, subject=user, issuer=user, audience=token_url)
    body = client.prepare_request_body(scope=["openid"])
    answer = requests.post(token_url, data=body, headers={"content-type": "application/x-www-form-urlencoded"})
    if answer.status_code != 200:
        sys.exit(f"oauthlib: {answer.status_code} {answer.text}")
    token = answer.json()["access_token"]
    check("oauthlib", requests.get(info_url, headers={"authorization": "Bearer " + token}))
