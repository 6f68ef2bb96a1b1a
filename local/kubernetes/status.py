"""Errors as the API server tells them: Status objects with a code, a reason and details."""

from collections.abc import Sequence

from local.kubernetes.resources import Object, Resource


class ApiError(Exception):
    """A request that failed, and the Status that says why."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Object | None = None,
        *,
        fresh_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        # An expired list says with which token the rest can still be had.
        self.fresh_token = fresh_token

    @property
    def retry_after_seconds(self) -> int:
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def body(self) -> Object | str:
        """The Status object; empty fields are left out, as the real server does."""
        metadata = {"continue": self.fresh_token} if self.fresh_token else {}
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}


class PlainError(ApiError):
    """An error that is told in plain words: the part that answers knows no Status."""

    def body(self) -> str:
        return self.message


def success(code: int, details: Object | None = None) -> Object:
    """The Status of a request that worked and has nothing else to show."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    return status | {"code": code} if code != 200 else status


def details_of(resource: Resource, name: str = "", **more: object) -> Object:
    """Which object a Status is about."""
    fields = {"name": name, "group": resource.group, "kind": resource.plural} | more
    return {key: value for key, value in fields.items() if value}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def not_found(resource: Resource, name: str) -> ApiError:
    message = f'{resource.qualified} "{name}" not found'
    return ApiError(404, "NotFound", message, details_of(resource, name))


def unknown_path() -> ApiError:
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, {})


def unknown_group() -> ApiError:
    """Of a path that no part of the server has; a client that wants JSON gets none."""
    return PlainError(404, "NotFound", "404 page not found\n")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def already_exists(resource: Resource, name: str) -> ApiError:
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details_of(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, details_of(resource, name))


def modified(resource: Resource, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version"
    return conflict(resource, name, f"{why} and try again")


def precondition_failed(resource: Resource, name: str, why: str) -> ApiError:
    """A deletion that means another object or version; it names the kind, not the resource."""
    message = f'Operation cannot be fulfilled on {kind_of(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details_of(resource, name, kind=resource.kind))


def unreadable_version(text: str) -> ApiError:
    """A resourceVersion that is no number: the server takes the fault upon itself."""
    return ApiError(500, "", f'strconv.ParseUint: parsing "{text}": invalid syntax')


def expired(fresh_token: str) -> ApiError:
    message = (
        "The provided continue parameter is too old to display a consistent list result. "
        "Start a new list, or go on with the token in metadata.continue."
    )
    return ApiError(410, "Expired", message, fresh_token=fresh_token)


def too_large(limit_bytes: int) -> ApiError:
    message = f"Request entity too large: limit is {limit_bytes}"
    return ApiError(413, "RequestEntityTooLarge", message)


def unknown_media_type() -> ApiError:
    """Of a type that is no patch at all."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(resource: Resource, name: str, causes: Sequence[Object]) -> ApiError:
    """422 with one cause ({reason, message, field}) for each field that is wrong."""
    kind = kind_of(resource)
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    why = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = details_of(resource, name, kind=resource.kind, causes=list(causes))
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {why}', details)


def undecodable(why: str) -> ApiError:
    """422 for a patch whose result is no object of a built-in kind; it says of no object."""
    message = f"Invalid value: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return ApiError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": causes})


def kind_of(resource: Resource) -> str:
    """The kind in messages: `Node`, `Deployment.apps`."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def too_many_requests(message: str, cause: str, *, retry_after_seconds: int = 0) -> ApiError:
    """A disruption budget that refuses."""
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return ApiError(429, "TooManyRequests", message, details)


def internal_error(why: str) -> ApiError:
    message = f"Internal error occurred: {why}"
    return ApiError(500, "InternalError", message, {"causes": [{"message": why}]})
