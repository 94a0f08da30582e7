internal import COpenSSL

/// Overwrites memory with zeros, in a way that no optimiser removes.
func wipe(_ memory: UnsafeMutableRawBufferPointer) { OPENSSL_cleanse(memory.baseAddress, memory.count) }

/// Compares `count` bytes in time that depends on `count` only.
func equalsInConstantTime(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ count: Int) -> Bool {
    CRYPTO_memcmp(left, right, count) == 0
}
