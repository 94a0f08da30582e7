/// A value that gives access to its bytes as one contiguous region, without a copy.
///
/// The functions of this module take `some ByteSource`. A caller passes `[UInt8]`, a slice, a raw buffer,
/// ``SecureBytes`` or a ``SHA256Digest`` without converting it.
public protocol ByteSource {
    /// Calls `body` with the bytes. The buffer is valid only until `body` returns.
    func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result
}

extension Array: ByteSource where Element == UInt8 {
    @inlinable
    public func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { bytes throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}

extension ArraySlice: ByteSource where Element == UInt8 {
    @inlinable
    public func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { bytes throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}

extension UnsafeRawBufferPointer: ByteSource {
    @inlinable
    public func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(self)
    }
}

extension String.UTF8View: ByteSource {
    @inlinable
    public func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let result = withContiguousStorageIfAvailable { bytes in
            Swift.Result { () throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
        }
        // Only strings of Foundation are in several pieces.
        guard let result else { return try [UInt8](self).withContiguousBytes(body) }
        return try result.get()
    }
}
