internal import COpenSSL
public import Cryptography

/// An X.509 certificate.
public struct Certificate: Sendable {
    let owner: Owner

    /// Reads one certificate in DER.
    public init(der: some ByteSource) throws(CertificateError) {
        OpenSSLError.clearQueue()
        let certificate: OpaquePointer? = der.withContiguousBytes { bytes in
            var cursor = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            guard let start = cursor, let certificate = d2i_X509(nil, &cursor, bytes.count) else { return nil }
            // Bytes after the certificate mean that this is something else.
            guard let end = cursor, end - start == bytes.count else {
                X509_free(certificate)
                return nil
            }
            return certificate
        }
        guard let certificate else { throw .invalidCertificate(OpenSSLError(draining: "read a DER certificate")) }
        owner = Owner(takingOwnershipOf: certificate)
    }

    init(owner: Owner) {
        self.owner = owner
    }

    /// Reads a chain in PEM, the server's own certificate first. Text between the certificates is ignored.
    public static func chain(pem: some ByteSource) throws(CertificateError) -> [Certificate] {
        OpenSSLError.clearQueue()
        let result = MemoryBIO.withReader(of: pem) { bio -> Result<[Certificate], CertificateError> in
            var chain: [Certificate] = []
            while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) {
                chain.append(Certificate(owner: Owner(takingOwnershipOf: certificate)))
            }
            // The end of the input is an error entry like any other, and the only one that is expected.
            let isEnd = saltern_ERR_get_reason(ERR_peek_last_error()) == PEM_R_NO_START_LINE
            let error = OpenSSLError(draining: "read a PEM certificate")
            guard isEnd else { return .failure(.invalidCertificate(error)) }
            return chain.isEmpty ? .failure(.noCertificate) : .success(chain)
        }
        return try result.get()
    }

    /// Reads a chain from a PEM file.
    public static func chain(contentsOf path: String) throws(CertificateError) -> [Certificate] {
        try chain(pem: ProtectedFile.read(path, access: .everyone))
    }

    /// The certificate in DER.
    public var der: [UInt8] {
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(owner.pointer, &der)
        guard count > 0, let der else {
            preconditionFailure("\(OpenSSLError(draining: "encode a certificate that was decoded"))")
        }
        defer { saltern_free(der) }
        return [UInt8](UnsafeBufferPointer(start: der, count: Int(count)))
    }

    /// The certificate in PEM.
    public var pem: [UInt8] {
        let bio = MemoryBIO()
        let status = PEM_write_bio_X509(bio.pointer, owner.pointer)
        precondition(status == 1, "\(OpenSSLError(draining: "encode a certificate that was decoded"))")
        return bio.withWrittenBytes { [UInt8]($0) }
    }
}

extension Certificate: Equatable {
    public static func == (left: Certificate, right: Certificate) -> Bool {
        X509_cmp(left.owner.pointer, right.owner.pointer) == 0
    }
}

extension Certificate {
    /// Owns an `X509 *`.
    ///
    /// `@unchecked Sendable` is safe: a certificate is never changed after it was read or signed, and OpenSSL
    /// guards what it caches inside one with a lock of its own.
    final class Owner: @unchecked Sendable {
        let pointer: OpaquePointer

        init(takingOwnershipOf pointer: OpaquePointer) {
            self.pointer = pointer
        }

        deinit { X509_free(pointer) }
    }
}
