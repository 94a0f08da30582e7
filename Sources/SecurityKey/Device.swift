internal import CFIDO2
internal import SalternClient

/// Owns an open device of libfido2.
struct Device: ~Copyable {
    // Owned: closed and freed once, by `deinit`.
    let pointer: OpaquePointer

    /// The time for a touch, in milliseconds.
    private static let patience: CInt = 60_000
    private static let listLimit = 16

    private init(takingOwnershipOf pointer: OpaquePointer) { self.pointer = pointer }

    deinit {
        fido_dev_close(pointer)
        var pointer: OpaquePointer? = pointer
        fido_dev_free(&pointer)
    }

    /// Opens the only security key.
    static func open() throws(PasskeyError) -> Device {
        _ = isSetUp
        guard let list = fido_dev_info_new(listLimit) else { throw .failed }
        defer {
            var list: OpaquePointer? = list
            fido_dev_info_free(&list, listLimit)
        }
        var count = 0
        guard fido_dev_info_manifest(list, listLimit, &count) == FIDO_OK, count > 0 else { throw .noAuthenticator }
        guard count == 1 else { throw .severalAuthenticators }
        guard let path = fido_dev_info_path(fido_dev_info_ptr(list, 0)), let pointer = fido_dev_new() else {
            throw .failed
        }
        guard fido_dev_open(pointer, path) == FIDO_OK else {
            var pointer: OpaquePointer? = pointer
            fido_dev_free(&pointer)
            throw .noAuthenticator
        }
        let device = Device(takingOwnershipOf: pointer)
        // An older key, of U2F alone, has neither passkeys nor PRF.
        guard fido_dev_is_fido2(pointer) else { throw .doesNotUnlock }
        try check(fido_dev_set_timeout(pointer, patience))
        return device
    }

    private static let isSetUp: Bool = {
        fido_init(FIDO_DISABLE_U2F_FALLBACK)
        return true
    }()

    var hasPIN: Bool { fido_dev_has_pin(pointer) }
    /// True for a key that recognises its user, such as by a fingerprint.
    var hasOwnVerification: Bool { fido_dev_has_uv(pointer) }
}
