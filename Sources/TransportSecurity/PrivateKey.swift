internal import COpenSSL
public import Cryptography

/// A private key that signs a TLS server's handshakes.
public struct PrivateKey: Sendable {
    let owner: Owner

    /// Creates a new ECDSA key on P-256, the fastest type that all clients support.
    public static func generate() throws(CertificateError) -> PrivateKey {
        guard let key = saltern_EVP_EC_gen_P256() else {
            throw .openSSL(OpenSSLError(draining: "make a P-256 key"))
        }
        return PrivateKey(owner: Owner(takingOwnershipOf: key))
    }

    /// Reads a PEM key of any type that OpenSSL can serve. Rejects a key under a passphrase, because a server starts
    /// without a user.
    public init(pem: some ByteSource) throws(CertificateError) {
        OpenSSLError.clearQueue()
        let key = MemoryBIO.withReader(of: pem) { bio in
            // Without a callback OpenSSL asks for the passphrase on the terminal.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let key else { throw .invalidKey(OpenSSLError(draining: "read a PEM key")) }
        owner = Owner(takingOwnershipOf: key)
    }

    /// Reads a PEM file. Rejects one that is not private (``ProtectedFile/isPrivate(_:)``).
    public init(contentsOf path: String) throws(CertificateError) {
        try self.init(pem: ProtectedFile.read(path, access: .owner))
    }

    private init(owner: Owner) {
        self.owner = owner
    }

    /// Returns the key as PKCS #8 in PEM, without a passphrase.
    public func pem() throws(CertificateError) -> SecureBytes {
        let bio = MemoryBIO()
        guard PEM_write_bio_PKCS8PrivateKey(bio.pointer, owner.pointer, nil, nil, 0, nil, nil) == 1 else {
            throw .openSSL(OpenSSLError(draining: "write a PEM key"))
        }
        return bio.withWrittenBytes { SecureBytes(copying: $0) }
    }

    /// Returns the public key as SubjectPublicKeyInfo in DER (RFC 5280 section 4.1).
    public func subjectPublicKeyInfo() throws(CertificateError) -> [UInt8] {
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(owner.pointer, &der)
        guard count > 0, let der else { throw .openSSL(OpenSSLError(draining: "encode a public key")) }
        defer { saltern_free(der) }
        return [UInt8](UnsafeBufferPointer(start: der, count: Int(count)))
    }

    /// Returns the pin that clients compare with the server's certificate.
    public func pin() throws(CertificateError) -> SPKIPin {
        try SPKIPin(subjectPublicKeyInfo: subjectPublicKeyInfo())
    }

    /// Writes the key to a new file that only its owner can read.
    func write(
        to name: String, in folder: ProtectedFolder, existing: ProtectedFile.ExistingFile
    ) throws(CertificateError) {
        try folder.write(pem(), to: name, access: .owner, existing: existing)
    }
}

extension PrivateKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "PrivateKey(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension PrivateKey {
    /// Owns an `EVP_PKEY *`. OpenSSL zeroes it when it frees it.
    ///
    /// `@unchecked Sendable` is safe: the key never changes after its creation. OpenSSL locks the caches inside a key.
    final class Owner: @unchecked Sendable {
        let pointer: OpaquePointer

        init(takingOwnershipOf pointer: OpaquePointer) {
            self.pointer = pointer
        }

        deinit { EVP_PKEY_free(pointer) }
    }
}

/// Owns a `BIO *` in memory, to read and write PEM.
struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer

    /// Creates an empty one for writing. It zeroes the bytes when it is freed.
    init() {
        guard let bio = BIO_new(BIO_s_secmem()) else {
            preconditionFailure("\(OpenSSLError(draining: "allocate a buffer"))")
        }
        pointer = bio
    }

    deinit { BIO_free(pointer) }

    /// Calls `body` with a reader of `source`, without copying it.
    static func withReader<Result, Failure: Error>(
        of source: some ByteSource, _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try source.withContiguousBytes { bytes throws(Failure) in
            // OpenSSL rejects a null address, also for an empty source.
            let empty: StaticString = ""
            let base = bytes.baseAddress ?? UnsafeRawPointer(empty.utf8Start)
            guard let bio = BIO_new_mem_buf(base, Int32(clamping: bytes.count)) else {
                preconditionFailure("\(OpenSSLError(draining: "allocate a buffer"))")
            }
            defer { BIO_free(bio) }
            return try body(bio)
        }
    }

    /// Calls `body` with the bytes written so far.
    borrowing func withWrittenBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var data: UnsafeMutablePointer<CChar>?
        let count = saltern_BIO_get_mem_data(pointer, &data)
        return body(UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : count))
    }
}
