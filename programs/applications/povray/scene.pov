// A regatta in the evening, and glass floats of fishermen's nets in front of it. The sky costs little, the sea more, and the floats most of all, since
// light goes through them and between them: a picture whose parts differ by far in what they cost.
//
// Nothing in it is left to chance: nothing has jitter, so every run of POV-Ray has the same pixels.
#version 3.7;

global_settings { assumed_gamma 1.0 max_trace_level 6 }

camera {
    location <0, 2.2, -11>
    look_at <0, 1.5, 0>
    angle 48
    right x * image_width / image_height
}

// The sun stands low on the left. It is a point: an area light keeps something from one block of pixels to the next, so that a pixel can differ by one
// step of a colour from that of another run.
light_source { <-60, 26, -30> rgb <1.35, 1.1, 0.85> }
light_source { <30, 40, -60> rgb <0.16, 0.19, 0.26> shadowless }

sky_sphere {
    pigment {
        gradient y
        color_map {
            [0.00 rgb <1.00, 0.62, 0.36>]
            [0.12 rgb <0.93, 0.66, 0.55>]
            [0.35 rgb <0.42, 0.52, 0.76>]
            [1.00 rgb <0.10, 0.18, 0.42>]
        }
    }
    pigment {
        bozo
        turbulence 0.6 octaves 5 omega 0.5
        color_map {
            [0.45 rgbt <1, 1, 1, 1>]
            [0.75 rgbt <1, 0.86, 0.78, 0.35>]
            [1.00 rgbt <0.9, 0.75, 0.75, 0.2>]
        }
        scale <0.5, 0.09, 0.3>
    }
}

// The sea: waves by their normals alone.
plane {
    y, 0
    pigment { rgb <0.02, 0.09, 0.12> }
    normal {
        average
        normal_map {
            [1 bumps 0.35 scale <0.9, 1, 0.25>]
            [1 bumps 0.20 scale <0.25, 1, 0.1> rotate 20 * y]
            [1 waves 0.10 frequency 2 scale 3 translate <-14, 0, 25>]
        }
    }
    finish { ambient 0.05 diffuse 0.5 specular 0.5 roughness 0.004 reflection { 0.05, 0.95 fresnel } conserve_energy }
    interior { ior 1.33 }
}

#declare Wood = texture {
    pigment { wood turbulence 0.08 color_map { [0 rgb <0.36, 0.18, 0.08>] [1 rgb <0.20, 0.09, 0.04>] } scale 0.08 rotate 88 * y }
    finish { ambient 0.08 diffuse 0.75 specular 0.35 roughness 0.02 }
}

// A boat at the origin that sails to the left; its sails have a colour.
#macro Boat(Colour)
    union {
        difference {
            sphere { 0, 1 scale <1.9, 0.62, 0.55> }
            plane { -y, -0.17 inverse }
            sphere { <0, 0.25, 0>, 1 scale <1.7, 0.38, 0.42> }
            texture { Wood }
        }
        cylinder { <-0.15, -0.2, 0>, <-0.15, 3.9, 0>, 0.045 texture { Wood } }
        cylinder { <-0.15, 0.62, 0>, <1.55, 0.72, 0.05>, 0.03 texture { Wood } }
        // The main sail behind the mast, and the jib before it: triangles that the wind has filled.
        bicubic_patch {
            type 1 flatness 0.001 u_steps 4 v_steps 4
            <-0.10, 0.75, 0.0>, <0.45, 0.78, -0.30>, <1.00, 0.80, -0.35>, <1.50, 0.82, -0.05>,
            <-0.10, 1.75, 0.0>, <0.25, 1.75, -0.38>, <0.65, 1.75, -0.42>, <1.10, 1.78, -0.10>,
            <-0.10, 2.75, 0.0>, <0.08, 2.75, -0.28>, <0.32, 2.75, -0.30>, <0.60, 2.78, -0.08>,
            <-0.10, 3.80, 0.0>, <-0.04, 3.81, -0.03>, <0.02, 3.82, -0.03>, <0.08, 3.83, 0.00>
            pigment { Colour }
            finish { ambient 0.2 diffuse 0.8 }
        }
        bicubic_patch {
            type 1 flatness 0.001 u_steps 4 v_steps 4
            <-1.75, 0.35, 0.0>, <-1.25, 0.42, -0.30>, <-0.75, 0.48, -0.32>, <-0.22, 0.55, -0.05>,
            <-1.28, 1.30, 0.0>, <-0.95, 1.32, -0.26>, <-0.60, 1.34, -0.28>, <-0.24, 1.36, -0.05>,
            <-0.80, 2.25, 0.0>, <-0.62, 2.26, -0.14>, <-0.42, 2.27, -0.15>, <-0.24, 2.28, -0.03>,
            <-0.30, 3.25, 0.0>, <-0.28, 3.26, -0.01>, <-0.26, 3.26, -0.01>, <-0.24, 3.27, 0.00>
            pigment { rgb <0.95, 0.92, 0.86> }
            finish { ambient 0.2 diffuse 0.8 }
        }
        rotate -9 * x
    }
#end

object { Boat(color rgb <0.95, 0.93, 0.88>) rotate 14 * y translate <-2.9, 0.08, 1.5> }
object { Boat(color rgb <0.80, 0.16, 0.12>) rotate -8 * y translate <2.6, 0.08, 6.5> }
object { Boat(color rgb <0.95, 0.78, 0.25>) rotate 20 * y translate <-7.5, 0.08, 14> }
object { Boat(color rgb <0.25, 0.45, 0.70>) rotate 4 * y translate <10, 0.08, 22> }
object { Boat(color rgb <0.93, 0.91, 0.88>) rotate -15 * y translate <-2.5, 0.08, 34> }

// The buoy round which they sail.
union {
    cone { <0, -0.3, 0>, 0.62, <0, 1.3, 0>, 0.22 }
    cylinder { <0, 1.3, 0>, <0, 1.9, 0>, 0.04 }
    sphere { <0, 2.0, 0>, 0.17 }
    pigment { gradient y color_map { [0.5 rgb <0.85, 0.12, 0.08>] [0.5 rgb <0.95, 0.93, 0.9>] } scale 0.8 translate 0.1 * y }
    finish { ambient 0.1 diffuse 0.75 specular 0.4 roughness 0.02 }
    rotate <0, 0, 7>
    translate <5.3, 0, 3>
}

// Floats of thick green and blue glass, hollow, half in the water.
#macro Float(Colour, Radius)
    difference {
        sphere { 0, Radius }
        sphere { 0, 0.86 * Radius }
        pigment { rgbf <0.97, 0.99, 0.98, 0.95> }
        finish { ambient 0 diffuse 0.05 specular 0.8 roughness 0.002 reflection { 0.03, 0.9 fresnel } conserve_energy }
        interior { ior 1.5 fade_distance 0.25 fade_power 1001 fade_color Colour }
    }
#end

object { Float(<0.25, 0.75, 0.45>, 0.62) translate <1.25, 0.30, -4.1> }
object { Float(<0.20, 0.55, 0.75>, 0.50) translate <2.30, 0.24, -3.6> }
object { Float(<0.35, 0.80, 0.55>, 0.42) translate <0.35, 0.20, -3.5> }
object { Float(<0.65, 0.70, 0.30>, 0.36) translate <2.00, 0.17, -4.8> }
object { Float(<0.20, 0.60, 0.70>, 0.30) translate <0.50, 0.14, -4.9> }
object { Float(<0.30, 0.78, 0.50>, 0.24) translate <-0.35, 0.12, -4.4> }
