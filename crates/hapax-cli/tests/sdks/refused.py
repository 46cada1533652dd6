"""Provokes refusals of the sidecar through SDKs, and prints one line of JSON for each error that they raise.

usage: python refused.py http://127.0.0.1:PORT CASE, where CASE is the idempotency key too
"""

import json
import sys
from importlib.metadata import version

import gocardless_pro
import jsonapi_requests
import requests
import resend
import stripe
import svix.api
from google.cloud._http import JSONConnection

base, key = sys.argv[1:]

stripe_client = stripe.StripeClient(
    "sk_test_of_the_tests", base_addresses={"api": base}, max_network_retries=0
)
gocardless = gocardless_pro.Client("token", base_url=base, raise_on_idempotency_conflict=True)
resend.api_key, resend.api_url = "re_of_the_tests", f"{base}/resend"
svix_client = svix.api.Svix("token", svix.api.SvixOptions(server_url=f"{base}/svix", retry_schedule=[]))
jsonapi = jsonapi_requests.Api.config({"API_ROOT": f"{base}/jsonapi/", "RETRIES": 1, "APPEND_SLASH": False})


class Client:
    _http = requests.Session()


class Google(JSONConnection):
    API_BASE_URL = base
    API_URL_TEMPLATE = "{api_base_url}/google{path}"


google = Google(Client())
Client._http.headers["Idempotency-Key"] = key

payment = {"currency": "GBP", "links": {"mandate": "MD1"}}
email = {"from": "a@example.com", "to": "b@example.com", "text": ""}

# For each SDK, a request whose amount makes it differ from others, and the code in its error.
sdks = {
    "stripe": (
        "stripe",
        lambda amount: stripe_client.v1.charges.create(
            {"amount": amount, "currency": "eur"}, {"idempotency_key": key}
        ),
        lambda error: error.code or error.json_body["error"]["code"],
    ),
    "stripe (v2)": (
        "stripe",
        lambda amount: stripe_client.v2.core.accounts.create(
            {"display_name": str(amount)}, {"idempotency_key": key}
        ),
        lambda error: error.code,
    ),
    "google-cloud-core": (
        "google",
        lambda amount: google.api_request("POST", "/orders", data={"amount": amount}),
        lambda error: error.metadata["code"],
    ),
    "jsonapi-requests": (
        "jsonapi",
        lambda amount: jsonapi.endpoint("orders").post(
            object=jsonapi_requests.JsonApiObject(type="orders", attributes={"amount": amount}),
            headers={"Idempotency-Key": key, "Content-Type": "application/vnd.api+json"},
        ),
        lambda error: json.loads(error.content)["errors"][0]["code"],
    ),
    "resend": (
        "template",
        lambda amount: resend.Emails.send({**email, "subject": str(amount)}, {"idempotency_key": key}),
        lambda error: error.error_type,
    ),
    "svix": (
        "template",
        lambda amount: svix_client.message.create(
            "app",
            svix.api.MessageIn(event_type="order.paid", payload={"amount": amount}),
            svix.api.MessageCreateOptions(idempotency_key=key),
        ),
        lambda error: error.code,
    ),
    "gocardless-pro": (
        "template",
        lambda amount: gocardless.payments.create({**payment, "amount": amount}, {"Idempotency-Key": key}),
        lambda error: error.errors[0]["reason"],
    ),
}

for name, (shape, send, code) in sdks.items():
    report = {"sdk": f"{name} for python", "version": version(name.split(" ")[0]), "shape": shape}
    report.update({"class": "none", "code": None})
    amount = 1
    try:
        send(amount)
        amount = 2
        send(amount)
    except Exception as error:
        report["class"] = type(error).__name__
        try:
            report["code"] = code(error)
        except Exception as missing:
            report["code"] = f"no code: {missing!r}"
        report["message"] = str(error)
        report["after"] = amount
    print(json.dumps(report))
